// The charting library, cut down to what the page uses, and one way to put a chart on it.
import { BarChart, CustomChart, LineChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  TitleComponent,
  TooltipComponent,
} from "echarts/components";
import { init, use, type EChartsCoreOption } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

import { element } from "./dom";

use([
  AriaComponent,
  BarChart,
  CustomChart,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  LineChart,
  SVGRenderer,
  TitleComponent,
  TooltipComponent,
]);

// Told apart without colour vision: Okabe and Ito, "Color universal design", 2008.
export const palette = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6b6b6b"];

export const phases = ["input", "forward", "backward", "exposed", "optimizer", "other"] as const;
export type Phase = (typeof phases)[number];
export const phaseColours: Record<Phase, string> = {
  input: "#E69F00",
  forward: "#56B4E9",
  backward: "#0072B2",
  exposed: "#D55E00",
  optimizer: "#009E73",
  other: "#bdbdbd",
};

function dark(): boolean {
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

export function ink(): string {
  return dark() ? "#e4e4e4" : "#222222";
}

export function faint(): string {
  return dark() ? "#3a3f45" : "#e3e3e3";
}

export function axis(name: string, extra: object = {}): object {
  return {
    name,
    nameLocation: "middle",
    nameGap: 34,
    nameTextStyle: { color: ink() },
    axisLabel: { color: ink() },
    axisLine: { lineStyle: { color: ink() } },
    splitLine: { lineStyle: { color: faint() } },
    ...extra,
  };
}

// Appends the chart to `parent`; `description` is what a screen reader says.
export function addChart(
  parent: HTMLElement,
  title: string,
  description: string,
  height: number,
  option: EChartsCoreOption,
): void {
  const holder = element("figure");
  const canvas = element("div", "", "chart");
  canvas.style.height = `${height}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", description);
  holder.append(element("figcaption", title), canvas);
  parent.append(holder);
  // The element has its size only once it is on the page.
  requestAnimationFrame(() => {
    const chart = init(canvas, undefined, { renderer: "svg" });
    chart.setOption({
      animation: false,
      color: palette,
      // By name, because the widths of legends are measured with it.
      textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: ink() },
      ...option,
    });
    new ResizeObserver(() => chart.resize()).observe(canvas);
  });
}
