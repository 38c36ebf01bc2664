const scratch = new Float32Array(1)

/** The shortest decimal that reads back as the same 32-bit float. */
export function shortestFloat32(value: number): string {
  if (!Number.isFinite(value)) return 'null'
  if (Number.isInteger(value)) return value === 0 ? '0' : String(value)
  for (let digits = 6; digits < 9; digits++) {
    const text = value.toPrecision(digits)
    scratch[0] = Number(text)
    if (scratch[0] === value) return String(Number(text))
  }
  return String(Number(value.toPrecision(9)))
}
