// The report of a run: one page, opens offline.
import { addBreakdown } from "./breakdown";
import { partsOf, readRun, type Cell, type ExpectationOutcome, type Run, type Summary } from "./data";
import { element, section, table } from "./dom";
import { duration, percent, rate, significant } from "./format";
import { addFindings, groupFindings, headline, marksOf } from "./findings";
import { addMemory, addTraces } from "./machines";
import { addNetwork } from "./network";
import { addRanks } from "./ranks";
import { addScaling } from "./scaling";
import { addStragglers } from "./straggler";

function addHead(page: HTMLElement, summary: Summary): void {
  page.append(element("h1", summary.lab));
  if (summary.question !== "") {
    page.append(element("p", summary.question, "question"));
  }
  const good = summary.exit_code === 0 && summary.complete;
  page.append(element("p", summary.verdict, good ? "verdict good" : "verdict bad"));
  const answers = element("ul", "", "answers");
  for (const sentence of summary.sentences) {
    answers.append(element("li", sentence));
  }
  for (const [index, group] of groupFindings(summary.cells).entries()) {
    answers.append(element("li", headline(index, group, summary.cells.length), "finding"));
  }
  if (answers.childElementCount > 0) {
    page.append(answers);
  }
}

// The median, and half the way from the fastest to the slowest repeat.
function step(cell: Cell): string {
  const { median, least, most } = cell.step_seconds;
  if (median === 0 || cell.repeats < 2) {
    return median === 0 ? "–" : duration(median);
  }
  return `${duration(median)} ±${(((most - least) / 2 / median) * 100).toFixed(0)} %`;
}

// A simulation trains nothing; a loss that ran away is no number either.
function finalLoss(cell: Cell): string {
  return cell.kind === "modelled" ? "–" : significant(cell.final_loss ?? Number.NaN);
}

function addTables(page: HTMLElement, summary: Summary): void {
  const made = section(
    "Figures",
    "Times are in the modelled cluster's units: wall time divided by the time scale. ± is half the " +
      "range over the repeats. [1], [2], … point at the findings below.",
  );
  const groups = groupFindings(summary.cells);
  for (const part of partsOf(summary.cells)) {
    const cells = summary.cells.filter((cell) => cell.part === part);
    made.append(
      table(
        cells,
        [
          { title: "exchange", value: (cell) => cell.exchange },
          { title: "fabric", value: (cell) => cell.fabric },
          { title: "workers", value: (cell) => `${cell.workers}`, numeric: true },
          { title: "samples/s", value: (cell) => rate(cell.samples_per_second.median), numeric: true },
          { title: "step", value: step, numeric: true },
          {
            title: "exposed",
            value: (cell) =>
              cell.exchange === "none" ? "–" : duration(cell.exposed_seconds.median),
            numeric: true,
          },
          {
            title: "efficiency",
            value: (cell) => (cell.efficiency > 0 ? cell.efficiency.toFixed(2) : "–"),
            numeric: true,
          },
          {
            title: "predicted",
            value: (cell) => (cell.predicted_seconds > 0 ? duration(cell.predicted_seconds) : "–"),
            numeric: true,
          },
          {
            title: "ratio",
            value: (cell) => (cell.ratio > 0 ? cell.ratio.toFixed(2) : "–"),
            numeric: true,
          },
          { title: "final loss", value: finalLoss, numeric: true },
          {
            title: "accuracy",
            value: (cell) => (cell.accuracy === null ? "–" : percent(cell.accuracy)),
            numeric: true,
          },
          { title: "time scale", value: (cell) => significant(cell.time_scale), numeric: true },
          { title: "kind", value: (cell) => cell.kind + marksOf(cell, groups) },
        ],
        part,
      ),
    );
  }
  page.append(made);
}

function outcome(row: ExpectationOutcome): string {
  return row.judged ? (row.held ? "held" : "FAILED") : "not judged";
}

function addExpectations(page: HTMLElement, summary: Summary): void {
  if (summary.expectations.length === 0) {
    return;
  }
  const made = section("Expectations");
  made.append(
    table(
      summary.expectations,
      [
        { title: "part", value: (row) => row.part },
        { title: "expected", value: (row) => row.text },
        { title: "outcome", value: outcome },
        { title: "found", value: (row) => row.found },
      ],
      "What the lab claims, and what was found",
    ),
  );
  page.append(made);
}

function addSources(page: HTMLElement, summary: Summary): void {
  const made = section("The lab and its environment");
  const entries = Object.entries(summary.environment);
  entries.push(["build", summary.build], ["lab hash", summary.lab_hash]);
  made.append(
    table(
      entries,
      [
        { title: "what", value: ([key]) => key },
        { title: "value", value: ([, value]) => value },
      ],
      "Environment",
    ),
  );
  made.append(element("pre", summary.lab_text));
  page.append(made);
}

function render(run: Run): void {
  const page = element("main");
  document.body.append(page);
  const { summary, timelines, traces } = run;
  addHead(page, summary);
  // A native cell has no simulation, and so nothing to draw.
  const drawn = summary.cells.filter((cell) => cell.step_seconds.median > 0);
  const disturbed = new Set(timelines.map((timeline) => timeline.part));
  for (const part of partsOf(drawn)) {
    addScaling(page, part, drawn);
    addStragglers(page, part, drawn, timelines);
    if (!disturbed.has(part)) {
      addBreakdown(page, part, drawn);
    }
  }
  addTables(page, summary);
  addRanks(page, summary.cells);
  addFindings(page, summary.cells);
  addExpectations(page, summary);
  addNetwork(page, summary.cells);
  addMemory(page, summary.cells);
  addTraces(page, summary.cells, traces);
  addSources(page, summary);
}

render(readRun());
