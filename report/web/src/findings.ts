// What a reader must know before trusting a figure: findings of one code and cause together.
import { nameOf, type Cell, type Finding } from "./data";
import { element, folded, section, table } from "./dom";

export interface FindingGroup {
  code: string;
  cause: string;
  found: { cell: Cell; finding: Finding }[]; // the worst first
}

export function groupFindings(cells: Cell[]): FindingGroup[] {
  const groups = new Map<string, FindingGroup>();
  for (const cell of cells) {
    for (const finding of cell.findings) {
      const key = `${finding.code}/${finding.cause}`;
      const group = groups.get(key) ?? { code: finding.code, cause: finding.cause, found: [] };
      group.found.push({ cell, finding });
      groups.set(key, group);
    }
  }
  for (const group of groups.values()) {
    group.found.sort((a, b) => b.finding.severity - a.finding.severity);
  }
  return [...groups.values()];
}

// "[2] NETWORK_NOT_HELD in 12 of 43 cells".
export function headline(index: number, group: FindingGroup, cells: number): string {
  const cause = group.cause === "" ? "" : ` (${group.cause})`;
  return `[${index + 1}] ${group.code}${cause} in ${group.found.length} of ${cells} cells`;
}

// " [1] [3]": which groups a cell's findings are in.
export function marksOf(cell: Cell, groups: FindingGroup[]): string {
  return groups
    .map((group, index) => (group.found.some((one) => one.cell === cell) ? ` [${index + 1}]` : ""))
    .join("");
}

export function addFindings(parent: HTMLElement, cells: Cell[]): void {
  const groups = groupFindings(cells);
  if (groups.length === 0) {
    return;
  }
  const made = section("Findings", "What to know before trusting a figure; the worst cell first.");
  for (const [index, group] of groups.entries()) {
    const remedy = group.found[0]?.finding.remedy ?? "";
    const content = element("div");
    if (remedy !== "") {
      content.append(element("p", `Remedy: ${remedy}.`, "intro"));
    }
    content.append(
      table(
        group.found,
        [
          { title: "part", value: ({ cell }) => cell.part },
          { title: "cell", value: ({ cell }) => nameOf(cell) },
          { title: "what was found", value: ({ finding }) => finding.text },
        ],
        group.code,
      ),
    );
    made.append(folded(headline(index, group, cells.length), content));
  }
  parent.append(made);
}
