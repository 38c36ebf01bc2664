import { randomUUID } from 'node:crypto'
import { withoutSecrets } from '../base/core/process/secrets.ts'

/** Where a command writes: results to stdout, all else to stderr. */
export interface Terminal {
  /** A line of the result; `told` is a secret that was made to be told in it. */
  print(line: string, told?: string): void
  /** A line for people: progress, warnings, hints. */
  tell(line: string): void
  /** Keeps a line below all others if stderr is a terminal, '' removes it; otherwise does nothing. */
  status(line: string): void
  /** Asks for a yes or no, if somebody is there to be asked; what is no clear yes is a no. */
  ask?(question: string): Promise<boolean>
  /** Whether stderr shows live progress. */
  readonly isLive: boolean
  /** Whether stdout is a terminal that is to show colours; NO_COLOR turns them off. */
  readonly isColoured: boolean
  /** Colours a text if colours are shown. */
  paint(colour: Colour, text: string): string
  readonly width: number
}

/**
 * A line that is safe to print: without secrets but the one it is there to tell, and with control characters made visible instead of
 * obeyed. Tabs and line breaks stay.
 */
function shown(line: string, told?: string): string {
  if (told !== undefined)
    return line
      .split(told)
      .map(part => shown(part))
      .join(told)
  return withoutSecrets(line).replace(unseen, showControl)
}

/** Control characters, and marks that turn the direction of writing. */
const unseen =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

function showControl(found: string): string {
  const code = found.charCodeAt(0)
  return code < 0x20
    ? String.fromCharCode(0x2400 + code)
    : `\\u${code.toString(16).padStart(4, '0')}`
}

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 }

/** A colour that a terminal can show. */
export type Colour = keyof typeof codes

/** What a terminal is made of. */
export interface Streams {
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly stdin?: NodeJS.ReadStream
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Opens the terminal of this process. */
export function makeTerminal({ stdout, stderr, stdin, env }: Streams): Terminal {
  const isDumb = env.TERM === 'dumb'
  const isLive = stderr.isTTY === true && !isDumb
  const isColoured = stdout.isTTY === true && !isDumb && !env.NO_COLOR
  // Colours are first written with a random word, so that no text can bring its own escape codes.
  const word = randomUUID()
  const marks = new RegExp(`${word}(\\d+);`, 'g')
  const coloured = (line: string, told?: string): string =>
    shown(line, told).replace(marks, '\x1b[$1m')
  let status = ''
  const clear = (): string => (status === '' ? '' : '\r\x1b[2K')
  const ask = async (question: string): Promise<boolean> => {
    const { createInterface } = await import('node:readline/promises')
    const lines = createInterface({ input: stdin!, output: stderr })
    try {
      return /^y(es)?$/i.test((await lines.question(`${shown(question)} [y/N] `)).trim())
    } finally {
      lines.close()
    }
  }
  return {
    ...(stdin?.isTTY && stderr.isTTY && { ask }),
    isLive,
    isColoured,
    width: stdout.columns || 100,
    print: (line, told) => {
      if (status !== '') stderr.write(clear())
      stdout.write(`${coloured(line, told)}\n`)
      if (status !== '') stderr.write(status)
    },
    tell: line => void stderr.write(`${clear()}${coloured(line)}\n${status}`),
    status: line => {
      if (!isLive) return
      const next = shown(line).slice(0, (stderr.columns || 100) - 1)
      stderr.write(`${clear()}${next}`)
      status = next
    },
    paint: (colour, text) => (isColoured ? `${word}${codes[colour]};${text}${word}0;` : text),
  }
}
