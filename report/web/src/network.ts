// Did the network keep its word? What crossed each connection, and each endpoint against its claim.
import type { Cell, Connection, Endpoint } from "./data";
import { folded, section, table } from "./dom";
import { bytes, duration } from "./format";

function against(found: number, p90: number, asked: number, show: (value: number) => string): string {
  return found > 0 ? `${show(found)} (p90 ${show(p90)}) of ${show(asked)}` : "–";
}

interface Row {
  cell: Cell;
  endpoint: Endpoint;
}

function accounts(cells: Cell[]): HTMLElement {
  const rows: Row[] = cells.flatMap((cell) =>
    cell.network
      .filter((endpoint) => endpoint.judged)
      .map((endpoint) => ({ cell, endpoint })),
  );
  return table(
    rows,
    [
      { title: "exchange", value: ({ cell }) => cell.exchange },
      { title: "fabric", value: ({ cell }) => cell.fabric },
      { title: "workers", value: ({ cell }) => `${cell.workers}`, numeric: true },
      { title: "endpoint", value: ({ endpoint }) => endpoint.endpoint },
      {
        title: "bandwidth, median",
        value: ({ endpoint: e }) =>
          against(e.bandwidth_median, e.bandwidth_p90, e.asked_bandwidth, (v) => `${bytes(v)}/s`),
      },
      {
        title: "latency, median",
        value: ({ endpoint: e }) =>
          against(e.latency_median, e.latency_p90, e.asked_latency, duration),
      },
      {
        title: "received",
        value: ({ endpoint: e }) =>
          e.body_received === e.body_claimed
            ? bytes(e.body_received)
            : `${bytes(e.body_received)} of ${bytes(e.body_claimed)}`,
        numeric: true,
      },
      {
        title: "verdict",
        value: ({ endpoint }) => (endpoint.held ? "held" : endpoint.findings.join("; ")),
      },
    ],
    "Each endpoint against the modelled network, in wall time (modelled time times the time scale)",
  );
}

interface Crossing {
  cell: Cell;
  endpoint: Endpoint;
  connection: Connection;
}

function connections(cells: Cell[]): HTMLElement {
  const rows: Crossing[] = cells.flatMap((cell) =>
    cell.network.flatMap((endpoint) =>
      endpoint.connections.map((connection) => ({ cell, endpoint, connection })),
    ),
  );
  return table(
    rows,
    [
      { title: "exchange", value: ({ cell }) => `${cell.exchange} over ${cell.transport}` },
      { title: "fabric", value: ({ cell }) => cell.fabric },
      { title: "workers", value: ({ cell }) => `${cell.workers}`, numeric: true },
      { title: "from", value: ({ endpoint }) => endpoint.endpoint },
      { title: "to", value: ({ connection }) => connection.peer },
      { title: "bodies", value: ({ connection: c }) => bytes(c.body_sent), numeric: true },
      { title: "with framing", value: ({ connection: c }) => bytes(c.wire_sent), numeric: true },
      { title: "messages", value: ({ connection: c }) => `${c.messages_sent}`, numeric: true },
    ],
    "Bytes that crossed each connection in the last repeat",
  );
}

export function addNetwork(parent: HTMLElement, cells: Cell[]): void {
  const judged = cells.flatMap((cell) => cell.network).filter((endpoint) => endpoint.judged);
  const made = section(
    "Did the network keep its word?",
    judged.length > 0
      ? `${judged.filter((endpoint) => endpoint.held).length} of ${judged.length} endpoints were ` +
          "within 5 % of the modelled bandwidth and within 5 % or 0.2 ms of its latency, as medians, " +
          "and received exactly the bytes that the exchange's arithmetic says."
      : "Nothing was shaped in this run.",
  );
  if (judged.length > 0) {
    made.append(folded("Endpoints", accounts(cells)));
  }
  made.append(folded("Connections", connections(cells)));
  parent.append(made);
}
