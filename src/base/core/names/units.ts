/** A count for people: `950`, `12.3k`, `4.56M`. */
export function count(value: number): string {
  if (value < 1000) return String(Math.round(value))
  if (value < 1e6) return `${(value / 1e3).toFixed(1)}k`
  return value < 1e9 ? `${(value / 1e6).toFixed(2)}M` : `${(value / 1e9).toFixed(2)}G`
}

/** Bytes for people: `512 B`, `1.5 MB`. */
export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let unit = 0
  let left = value
  while (left >= 1000 && unit < units.length - 1) {
    left /= 1000
    unit++
  }
  return `${unit === 0 ? Math.round(left) : left.toFixed(1)} ${units[unit]}`
}

/** A share as people read it: `62.5 %`. */
export function percent(value: number): string {
  return `${(value * 100).toFixed(1)} %`
}

/** Seconds for people: `30 ms`, `4.2 s`, `3 min 12 s`, `2 h 5 min`. */
export function duration(seconds: number): string {
  if (seconds < 0.1) return `${Math.round(seconds * 1000)} ms`
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
