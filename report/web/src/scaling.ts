// Scaling curves: throughput and efficiency against workers, with the ideal line.
import { addChart, axis, ink, palette } from "./chart";
import { otherSettings, type Cell } from "./data";
import { section } from "./dom";
import { percent, rate, significant } from "./format";

function groupBy<K>(cells: Cell[], key: (cell: Cell) => K): Map<K, Cell[]> {
  const groups = new Map<K, Cell[]>();
  for (const cell of cells) {
    const group = groups.get(key(cell));
    if (group === undefined) {
      groups.set(key(cell), [cell]);
    } else {
      group.push(cell);
    }
  }
  return groups;
}

function lineName(cell: Cell): string {
  const rest = otherSettings(cell);
  return rest === "" ? cell.exchange : `${cell.exchange} (${rest})`;
}

const dashes = ["solid", "dashed", "dotted"];

function series(cells: Cell[], value: (cell: Cell) => number): object[] {
  const lines = groupBy(cells, lineName);
  return [...lines.entries()].map(([name, line], index) => ({
    name,
    type: "line",
    symbolSize: 8,
    lineStyle: { width: 2.5, type: dashes[index % dashes.length] },
    data: [...line].sort((a, b) => a.workers - b.workers).map((cell) => [cell.workers, value(cell)]),
  }));
}

function idealLine(workers: number[], perWorker: number): object {
  return {
    name: "ideal",
    type: "line",
    symbol: "none",
    color: ink(),
    lineStyle: { width: 1.5, type: "dashed", color: ink() },
    data: (isWide(workers) ? workers : [0, ...workers]).map((count) => [count, count * perWorker]),
  };
}

// Beyond this a curve's first points would lie on top of each other on a linear axis.
const mostOnLinearAxis = 64;

function isWide(workers: number[]): boolean {
  return Math.max(...workers) > mostOnLinearAxis;
}

function workerAxis(workers: number[]): object {
  const most = Math.max(...workers);
  if (isWide(workers)) {
    return axis("workers", {
      type: "log",
      logBase: 2,
      min: Math.min(...workers),
      max: most,
      axisLabel: { color: ink(), hideOverlap: true, formatter: (value: number) => significant(value) },
    });
  }
  return axis("workers", {
    type: "value",
    min: 0,
    max: most,
    minInterval: 1,
    interval: most <= 8 ? 1 : undefined,
    axisLabel: { color: ink(), formatter: (value: number) => significant(value) },
  });
}

// For each fabric of a part: throughput with the ideal line. Then all efficiencies together.
export function addScaling(parent: HTMLElement, part: string, all: Cell[]): void {
  const cells = all.filter((cell) => cell.part === part && !cell.baseline);
  const workers = [...new Set(cells.map((cell) => cell.workers))].sort((a, b) => a - b);
  if (workers.length < 2) {
    return;
  }
  const made = section(
    `Scaling: ${part}`,
    "The ideal line is the throughput of one worker with no exchange at all, times the workers.",
  );
  const grid = document.createElement("div");
  grid.className = "grid";
  made.append(grid);
  for (const [fabric, group] of groupBy(cells, (cell) => cell.fabric)) {
    const ideals = group
      .filter((cell) => cell.efficiency > 0)
      .map((cell) => cell.samples_per_second.median / (cell.efficiency * cell.workers));
    const lines = series(group, (cell) => cell.samples_per_second.median);
    if (ideals.length > 0) {
      lines.push(idealLine(workers, Math.max(...ideals)));
    }
    addChart(
      grid,
      `${fabric}: samples/s (${group[0]?.kind ?? ""})`,
      `Throughput on ${fabric} against workers`,
      300,
      {
        tooltip: { trigger: "axis", valueFormatter: (value: number) => rate(value) },
        legend: { bottom: 0, textStyle: { color: ink() } },
        grid: { left: 64, right: 18, top: 14, bottom: 74 },
        xAxis: workerAxis(workers),
        yAxis: axis("", {
          ...(isWide(workers) ? { type: "log" } : { type: "value", min: 0 }),
          axisLabel: { color: ink(), formatter: (value: number) => rate(value) },
        }),
        series: lines,
      },
    );
  }
  addEfficiencies(made, cells);
  parent.append(made);
}

// Bars at the largest number of workers: where the networks differ.
function addEfficiencies(parent: HTMLElement, cells: Cell[]): void {
  const most = Math.max(...cells.map((cell) => cell.workers));
  const largest = cells.filter((cell) => cell.workers === most && cell.efficiency > 0);
  if (largest.length === 0) {
    return;
  }
  const fabrics = [...new Set(largest.map((cell) => cell.fabric))];
  const lines = groupBy(largest, lineName);
  addChart(
    parent,
    `Efficiency at ${most} workers`,
    `Efficiency of each exchange on each network at ${most} workers`,
    280,
    {
      tooltip: { trigger: "axis", valueFormatter: (value: number) => percent(value) },
      legend: { bottom: 0, textStyle: { color: ink() } },
      grid: { left: 64, right: 18, top: 14, bottom: 58 },
      xAxis: axis("", { type: "category", data: fabrics }),
      yAxis: axis("", {
        type: "value",
        min: 0,
        axisLabel: { color: ink(), formatter: (value: number) => percent(value) },
      }),
      series: [...lines.entries()].map(([name, line], index) => ({
        name,
        type: "bar",
        color: palette[index % palette.length],
        label: {
          show: true,
          position: "top",
          color: ink(),
          formatter: (item: { value: number }) => `${significant(item.value * 100, 2)} %`,
        },
        data: fabrics.map(
          (fabric) => line.find((cell) => cell.fabric === fabric)?.efficiency ?? null,
        ),
      })),
    },
  );
}
