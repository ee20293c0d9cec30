// Straggler scenarios: loss against time, and a lane per rank.
import { addChart, axis, ink, phaseColours, type Phase } from "./chart";
import { otherSettings, type Cell, type Timeline, type TimelineStep } from "./data";
import { element, section } from "./dom";
import { duration, significant } from "./format";

function nameOf(cell: Cell): string {
  const rest = otherSettings(cell);
  return rest === "" ? cell.exchange : `${cell.exchange} (${rest})`;
}

function addLoss(parent: HTMLElement, cells: Cell[]): void {
  addChart(parent, "Loss against time", "Training loss of each exchange against time", 320, {
    tooltip: { trigger: "item" },
    legend: { bottom: 0, textStyle: { color: ink() } },
    grid: { left: 64, right: 18, top: 14, bottom: 80 },
    xAxis: axis("time (modelled)", {
      type: "value",
      axisLabel: { color: ink(), formatter: (value: number) => duration(value) },
    }),
    yAxis: axis("", {
      type: "value",
      axisLabel: { color: ink(), formatter: (value: number) => significant(value) },
    }),
    series: cells.map((cell) => ({
      name: nameOf(cell),
      type: "line",
      symbol: "none",
      lineStyle: { width: 2 },
      data: cell.loss_curve.map((loss, index) => [cell.loss_seconds[index] ?? 0, loss]),
    })),
  });
}

interface Bar {
  value: [number, number, number]; // rank, begins, ends
  itemStyle: { color: string };
  phase: Phase;
  step: number;
}

// A step's phases one after the other, in the order in which they happen.
function barsOf(step: TimelineStep, origin: number): Bar[] {
  const order: Phase[] = ["input", "forward", "backward", "exposed", "optimizer"];
  let now = step.begins - origin;
  const bars: Bar[] = [];
  const named = order.reduce((sum, phase) => sum + step[phase as keyof TimelineStep], 0);
  const spans: [Phase, number][] = [["other", Math.max(0, step.total - named)]];
  for (const phase of order) {
    spans.push([phase, step[phase as keyof TimelineStep]]);
  }
  for (const [phase, length] of spans) {
    if (length > 0) {
      bars.push({
        value: [step.rank, now, now + length],
        itemStyle: { color: phaseColours[phase] },
        phase,
        step: step.step,
      });
    }
    now += length;
  }
  return bars;
}

interface RenderApi {
  value(dimension: number): number;
  coord(point: [number, number]): [number, number];
  size(extent: [number, number]): [number, number];
  style(): object;
}

function addLanes(parent: HTMLElement, cell: Cell, timeline: Timeline): void {
  const ranks = [...new Set(timeline.steps.map((step) => step.rank))].sort((a, b) => a - b);
  const origin = Math.min(...timeline.steps.map((step) => step.begins));
  const bars = timeline.steps.flatMap((step) => barsOf(step, origin));
  addChart(
    parent,
    `${nameOf(cell)}: what each rank does`,
    `Timeline of the phases of each rank for ${nameOf(cell)}`,
    120 + 30 * ranks.length,
    {
      tooltip: {
        formatter: (item: { data: Bar }) =>
          `rank ${item.data.value[0]}, step ${item.data.step}: ${item.data.phase} ` +
          duration(item.data.value[2] - item.data.value[1]),
      },
      grid: { left: 60, right: 24, top: 8, bottom: 62 },
      dataZoom: [{ type: "slider", height: 16, bottom: 6, showDetail: false }],
      xAxis: axis("", {
        type: "value",
        max: "dataMax",
        axisLabel: { color: ink(), formatter: (value: number) => duration(value) },
      }),
      yAxis: axis("", { type: "category", data: ranks.map((rank) => `rank ${rank}`), inverse: true }),
      series: [
        {
          type: "custom",
          encode: { x: [1, 2], y: 0 },
          data: bars,
          renderItem: (_: unknown, api: RenderApi) => {
            const lane = ranks.indexOf(api.value(0));
            const from = api.coord([api.value(1), lane]);
            const to = api.coord([api.value(2), lane]);
            const height = api.size([0, 1])[1] * 0.7;
            return {
              type: "rect",
              shape: {
                x: from[0],
                y: from[1] - height / 2,
                width: Math.max(0.5, to[0] - from[0]),
                height,
              },
              style: api.style(),
            };
          },
        },
      ],
    },
  );
}

function addLegend(parent: HTMLElement): void {
  const legend = element("p", "", "legend");
  for (const [phase, colour] of Object.entries(phaseColours)) {
    const swatch = element("span", "", "swatch");
    swatch.style.background = colour;
    legend.append(swatch, element("span", `${phase} `));
  }
  parent.append(legend);
}

export function addStragglers(
  parent: HTMLElement,
  part: string,
  all: Cell[],
  timelines: Timeline[],
): void {
  const cells = all.filter((cell) => cell.part === part && !cell.baseline);
  const mine = timelines.filter((timeline) => timeline.part === part);
  if (mine.length === 0) {
    return;
  }
  const made = section(
    `Under disturbance: ${part}`,
    "A lane per rank, first repeat. A slow rank shows as a long bar of its own and as waiting " +
      "(exposed) on all the others.",
  );
  if (cells.some((cell) => cell.loss_curve.length > 0)) {
    addLoss(made, cells);
  }
  addLegend(made);
  for (const timeline of mine) {
    const cell = cells.find((candidate) => candidate.cell === timeline.cell);
    if (cell !== undefined && timeline.steps.length > 0) {
      addLanes(made, cell, timeline);
    }
  }
  parent.append(made);
}
