// Where a step's time goes, per rank: one stacked bar each.
import { addChart, axis, ink, phaseColours, phases } from "./chart";
import { nameOf, type Cell } from "./data";
import { element, section } from "./dom";
import { duration } from "./format";

// The cells with the most workers, at most eight of them.
export function addBreakdown(parent: HTMLElement, part: string, all: Cell[]): void {
  const cells = all.filter((cell) => cell.part === part && !cell.baseline);
  const most = Math.max(...cells.map((cell) => cell.workers));
  const shown = cells
    .filter((cell) => cell.workers === most && cell.breakdown.length > 0)
    .slice(0, 8);
  if (shown.length === 0) {
    return;
  }
  const made = section(
    `Where a step goes: ${part}`,
    "Mean time of a step per rank. Exposed is communication that the step waited for; other is " +
      "pauses and the time between steps.",
  );
  const grid = element("div", "", "grid");
  made.append(grid);
  for (const cell of shown) {
    const ranks = cell.breakdown.map((row) => `rank ${row.rank}`);
    addChart(
      grid,
      nameOf(cell),
      `Step time by phase and rank for ${nameOf(cell)}`,
      110 + 34 * ranks.length,
      {
        tooltip: { trigger: "axis", valueFormatter: (value: number) => duration(value) },
        legend: { bottom: 0, itemWidth: 14, textStyle: { color: ink(), fontSize: 11 } },
        grid: { left: 60, right: 24, top: 8, bottom: 58 },
        xAxis: axis("", {
          type: "value",
          splitNumber: 4,
          axisLabel: { color: ink(), formatter: (value: number) => duration(value) },
        }),
        yAxis: axis("", { type: "category", data: ranks, inverse: true }),
        series: phases.map((phase) => ({
          name: phase,
          type: "bar",
          stack: "step",
          color: phaseColours[phase],
          data: cell.breakdown.map((row) => row[phase]),
        })),
      },
    );
  }
  parent.append(made);
}
