// Figures as people read them: three significant digits, the unit that fits.

export function significant(value: number, digits = 3): string {
  if (!Number.isFinite(value)) {
    return "–";
  }
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 12 });
}

export function duration(seconds: number): string {
  const magnitude = Math.abs(seconds);
  if (magnitude === 0) {
    return "0";
  }
  if (magnitude < 1e-3) {
    return `${significant(seconds * 1e6)} µs`;
  }
  return magnitude < 1 ? `${significant(seconds * 1e3)} ms` : `${significant(seconds)} s`;
}

export function rate(perSecond: number): string {
  if (perSecond >= 1e9) {
    return `${significant(perSecond / 1e9)} G/s`;
  }
  if (perSecond >= 1e6) {
    return `${significant(perSecond / 1e6)} M/s`;
  }
  return perSecond >= 1e3 ? `${significant(perSecond / 1e3)} k/s` : `${significant(perSecond)} /s`;
}

export function bytes(count: number): string {
  if (count >= 1e6) {
    return `${significant(count / 1e6, 4)} MB`;
  }
  return count >= 1e3 ? `${significant(count / 1e3, 4)} kB` : `${count} B`;
}

export function percent(share: number): string {
  return `${significant(share * 100)} %`;
}
