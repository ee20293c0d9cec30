// What the workers were: their memory by kind, and their traces.
import { nameOf, type Cell, type Memory, type TraceFolder } from "./data";
import { element, folded, section, table } from "./dom";
import { bytes, percent } from "./format";

interface Row {
  cell: Cell;
  memory: Memory;
}

function against(memory: Memory): string {
  if (memory.predicted === null) {
    return "–";
  }
  const off = memory.predicted > 0 ? memory.peak / memory.predicted - 1 : 0;
  return off === 0 ? bytes(memory.predicted) : `${bytes(memory.predicted)} (${percent(off)} off)`;
}

export function addMemory(parent: HTMLElement, cells: Cell[]): void {
  const rows: Row[] = cells.flatMap((cell) => cell.memory.map((memory) => ({ cell, memory })));
  const used = rows.filter(({ memory }) => memory.peak > 0 || (memory.predicted ?? 0) > 0);
  if (used.length === 0) {
    return;
  }
  const made = section(
    "Memory of the workers",
    "Bytes that the device counted, by kind, in the last repeat; predicted is the closed form of " +
      "the peak (weights, gradients, optimizer state, activations).",
  );
  made.append(
    folded(
      "By cell, rank and kind",
      table(
        used,
        [
          { title: "part", value: ({ cell }) => cell.part },
          { title: "cell", value: ({ cell }) => nameOf(cell) },
          { title: "rank", value: ({ memory }) => `${memory.rank}`, numeric: true },
          { title: "kind", value: ({ memory }) => memory.kind },
          { title: "at the end", value: ({ memory }) => bytes(memory.now), numeric: true },
          { title: "peak", value: ({ memory }) => bytes(memory.peak), numeric: true },
          { title: "predicted", value: ({ memory }) => against(memory), numeric: true },
        ],
        "Memory",
      ),
    ),
  );
  parent.append(made);
}

export function addTraces(parent: HTMLElement, cells: Cell[], traces: TraceFolder[]): void {
  if (traces.length === 0) {
    return;
  }
  const made = section(
    "Traces",
    "Of the first repeat, beside this page; each opens in ui.perfetto.dev (Open trace file).",
  );
  const list = element("ul");
  for (const trace of traces) {
    const cell = cells.find((one) => one.part === trace.part && one.cell === trace.cell);
    const item = element("li", cell === undefined ? trace.part : `${trace.part}: ${nameOf(cell)}: `);
    for (let rank = 0; rank < trace.ranks; ++rank) {
      const link = element("a", `rank ${rank}`);
      link.href = `${trace.folder}/rank_${rank}.json`;
      item.append(link, " ");
    }
    list.append(item);
  }
  made.append(folded("By cell", list));
  parent.append(made);
}
