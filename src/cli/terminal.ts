/** Where a command writes: results to stdout, all else to stderr. */
export interface Terminal {
  /** A line of the result. */
  print(line: string): void
  /** A line for people: progress, warnings, hints. */
  tell(line: string): void
  /** Replaces the last status line where stderr is a terminal; says nothing elsewhere. */
  status(line: string): void
  /** Whether stderr shows live progress. */
  readonly isLive: boolean
  /** Colours a text where stdout is a terminal. */
  paint(colour: Colour, text: string): string
  readonly width: number
}

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 }

/** A colour that a terminal can show. */
export type Colour = keyof typeof codes

/** The streams a terminal is made of. */
export interface Streams {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

/** Opens the terminal of this process. */
export function openTerminal({ stdout, stderr }: Streams): Terminal {
  const isLive = stderr.isTTY === true
  let hasStatus = false
  const clear = (): string => (hasStatus ? '\r\x1b[2K' : '')
  return {
    isLive,
    width: stdout.columns ?? 100,
    print: line => {
      if (hasStatus) stderr.write(clear())
      hasStatus = false
      stdout.write(`${line}\n`)
    },
    tell: line => {
      stderr.write(`${clear()}${line}\n`)
      hasStatus = false
    },
    status: line => {
      if (!isLive) return
      stderr.write(`${clear()}${line.slice(0, (stderr.columns ?? 100) - 1)}`)
      hasStatus = true
    },
    paint: (colour, text) => (stdout.isTTY ? `\x1b[${codes[colour]}m${text}\x1b[0m` : text),
  }
}
