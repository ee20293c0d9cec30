// The run as the program writes it (experiment/run_record.h). Times in modelled seconds.

export interface Spread {
  median: number;
  least: number;
  most: number;
}

export interface RankBreakdown {
  rank: number;
  input: number;
  forward: number;
  backward: number;
  exposed: number;
  optimizer: number;
  other: number;
  hidden: number | null; // communication beside compute; null where nothing was traced
  samples_per_second: number;
  peak_flops: number;
  mfu: number | null; // null: no peak to hold it against, or refused
  hfu: number | null;
}

// What a rank's compute is held against.
export interface Work {
  tokens: number; // of a sample; 0: a sample is no sequence
  formula: string;
  peak: string;
}

export interface Connection {
  peer: string;
  body_sent: number;
  body_received: number;
  wire_sent: number;
  wire_received: number;
  messages_sent: number;
  messages_received: number;
}

// One endpoint of a run; rates and latencies in wall time, dilated by the time scale.
export interface Endpoint {
  endpoint: string;
  connections: Connection[];
  judged: boolean;
  held: boolean;
  findings: string[];
  asked_bandwidth: number;
  bandwidth_median: number;
  bandwidth_p90: number;
  asked_latency: number;
  latency_median: number;
  latency_p90: number;
  body_received: number;
  body_claimed: number;
}

export interface Memory {
  rank: number;
  kind: string;
  now: number;
  peak: number;
  predicted: number | null;
}

export interface Finding {
  code: string;
  cause: string;
  text: string;
  remedy: string;
  severity: number;
}

export interface Cell {
  part: string;
  cell: number;
  baseline: boolean;
  settings: Record<string, string>;
  exchange: string;
  transport: string;
  fabric: string;
  workers: number;
  servers: number;
  threads: number;
  time_scale: number;
  kind: string;
  repeats: number;
  samples_per_second: Spread; // a modelled cell has one repeat, no loss and no accuracy
  step_seconds: Spread;
  exposed_seconds: Spread;
  efficiency: number;
  predicted_seconds: number;
  ratio: number;
  final_loss: number | null;
  accuracy: number | null;
  work: Work;
  breakdown: RankBreakdown[];
  loss_curve: number[];
  loss_seconds: number[];
  staleness: Record<string, number>;
  messages: number;
  could_not_keep_up: number;
  lateness_log2_us: number[];
  network: Endpoint[];
  memory: Memory[];
  start_up_seconds: Spread;
  findings: Finding[];
}

export interface ExpectationOutcome {
  part: string;
  text: string;
  judged: boolean;
  held: boolean;
  found: string;
}

export interface Summary {
  lab: string;
  question: string;
  lab_text: string;
  lab_hash: string;
  build: string;
  environment: Record<string, string>;
  cells: Cell[];
  expectations: ExpectationOutcome[];
  sentences: string[];
  verdict: string;
  exit_code: number;
  complete: boolean;
}

// One step of one rank, for the timeline.
export interface TimelineStep {
  rank: number;
  step: number;
  begins: number;
  input: number;
  forward: number;
  backward: number;
  exposed: number;
  optimizer: number;
  total: number;
}

export interface Timeline {
  part: string;
  cell: number;
  steps: TimelineStep[];
}

export interface TraceFolder {
  part: string;
  cell: number;
  folder: string;
  ranks: number;
}

export interface Run {
  summary: Summary;
  timelines: Timeline[];
  traces: TraceFolder[];
}

export function readRun(): Run {
  const holder = document.getElementById("run");
  if (holder === null || holder.textContent === null) {
    throw new Error("the page holds no run");
  }
  const run = JSON.parse(holder.textContent) as Run;
  run.summary.cells = inReadingOrder(run.summary);
  return run;
}

// The rows `none` first in their part, as in the table on a terminal.
function inReadingOrder(summary: Summary): Cell[] {
  return partsOf(summary.cells).flatMap((part) =>
    [true, false].flatMap((baseline) =>
      summary.cells.filter((cell) => cell.part === part && cell.baseline === baseline),
    ),
  );
}

export function partsOf(cells: Cell[]): string[] {
  return [...new Set(cells.map((cell) => cell.part))];
}

// A cell in a heading or a list.
export function nameOf(cell: Cell): string {
  const rest = otherSettings(cell);
  const workers = cell.workers === 1 ? "1 worker" : `${cell.workers} workers`;
  return [cell.exchange, cell.fabric, workers, rest].filter((word) => word !== "").join(", ");
}

// What tells a cell from the others of its part, without exchange, fabric and workers.
export function otherSettings(cell: Cell): string {
  return Object.entries(cell.settings)
    .filter(([path]) => !/^(exchange|fabric\.preset|cluster\.workers)/.test(path))
    .map(([path, value]) => `${path} ${value}`)
    .join(", ");
}
