import { describeCause } from '../src/base/core/failure.ts'
import { exitCodeOf, firstCause } from '../src/cli/command.ts'
import { loadCommand } from '../src/cli/commands.ts'
import { readFlags } from '../src/cli/flags.ts'

/** What a command printed and ended with. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command in this process; keeps what it prints, and prints errors as the program does. */
export async function runCommand(
  words: readonly string[],
  options: { readonly signal?: AbortSignal; readonly onLine?: (line: string) => void } = {},
): Promise<Ran> {
  const { signal = new AbortController().signal, onLine = () => {} } = options
  const printed: string[] = []
  const told: string[] = []
  const [name, ...rest] = words
  const command = await loadCommand(name ?? '')
  if (!command) throw new Error(`no command ${name}`)
  const text = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')
  try {
    const code = await command.run({
      ...readFlags(command, rest),
      signal,
      terminal: {
        print: line => {
          printed.push(line)
          onLine(line)
        },
        tell: line => {
          told.push(line)
          onLine(line)
        },
        status: () => {},
        isLive: false,
        isColoured: false,
        paint: (_colour, painted) => painted,
        width: 100,
      },
    })
    return { code, stdout: text(printed), stderr: text(told) }
  } catch (thrown) {
    const error = firstCause(thrown)
    told.push(describeCause(error))
    return { code: exitCodeOf(error), stdout: text(printed), stderr: text(told) }
  }
}
