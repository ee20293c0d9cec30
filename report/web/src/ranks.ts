// Where each rank's step went, and how much it got done: a row a rank.
import { nameOf, type Cell, type RankBreakdown } from "./data";
import { element, folded, section, table } from "./dom";
import { duration, percent, rate } from "./format";

interface Row {
  cell: Cell;
  rank: RankBreakdown;
  step: number; // seconds
}

function compute(rank: RankBreakdown): number {
  return rank.forward + rank.backward + rank.optimizer;
}

function known(share: number | null): string {
  return share === null ? "–" : percent(share);
}

function rowsOf(cells: Cell[]): Row[] {
  return cells
    .flatMap((cell) =>
      cell.breakdown.map((rank) => ({
        cell,
        rank,
        step: rank.input + compute(rank) + rank.exposed + rank.other,
      })),
    )
    .filter((row) => row.step > 0);
}

// Which formula and which peak, once each.
function sources(rows: Row[]): HTMLElement {
  const held = rows.filter(({ rank }) => rank.mfu !== null);
  const lines = held.map(
    ({ cell }) => `MFU and HFU (${cell.kind}): ${cell.work.formula}; peak: ${cell.work.peak}.`,
  );
  const list = element("ul");
  list.append(...[...new Set(lines)].map((line) => element("li", line)));
  return list;
}

export function addRanks(parent: HTMLElement, cells: Cell[]): void {
  const rows = rowsOf(cells);
  if (rows.length === 0) {
    return;
  }
  const share = (part: (rank: RankBreakdown) => number | null) => (row: Row) => {
    const seconds = part(row.rank);
    return known(seconds === null ? null : seconds / row.step);
  };
  const made = section(
    "Ranks",
    "Means over the counted steps. Compute, exposed communication, waiting for input and idle are " +
      "the whole step; hidden is communication beside compute.",
  );
  made.append(
    sources(rows),
    folded(
      "By cell and rank",
      table(
        rows,
        [
          { title: "part", value: ({ cell }) => cell.part },
          { title: "cell", value: ({ cell }) => nameOf(cell) },
          { title: "rank", value: ({ rank }) => `${rank.rank}`, numeric: true },
          {
            title: "samples/s",
            value: ({ rank }) => rate(rank.samples_per_second),
            numeric: true,
          },
          {
            title: "tokens/s",
            value: ({ cell, rank }) =>
              cell.work.tokens > 0 ? rate(rank.samples_per_second * cell.work.tokens) : "–",
            numeric: true,
          },
          { title: "step", value: ({ step }) => duration(step), numeric: true },
          { title: "compute", value: share(compute), numeric: true },
          { title: "exposed", value: share((rank) => rank.exposed), numeric: true },
          { title: "input", value: share((rank) => rank.input), numeric: true },
          { title: "idle", value: share((rank) => rank.other), numeric: true },
          { title: "hidden", value: share((rank) => rank.hidden), numeric: true },
          { title: "MFU", value: ({ rank }) => known(rank.mfu), numeric: true },
          { title: "HFU", value: ({ rank }) => known(rank.hfu), numeric: true },
        ],
        "Where each rank's step went, and how much it got done",
      ),
    ),
  );
  parent.append(made);
}
