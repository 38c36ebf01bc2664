import { z } from 'zod'
import { late } from '../../../engine/environments/late.ts'
import type { Inside, InsideProcess } from '../inside/inside.ts'
import { parse } from './files.ts'
import { RefusedCall } from './json-rpc.ts'
import { tail } from './run-to-end.ts'

/** Most terminals at one time, and most bytes that one keeps. */
const mostTerminals = 64
const mostKept = 2 ** 20

const schemas = late(() => ({
  create: z.object({
    command: z.string().min(1),
    args: z.array(z.string()).nullish(),
    env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
    cwd: z.string().nullish(),
    outputByteLimit: z.int().min(0).nullish(),
  }),
  one: z.object({ terminalId: z.string() }),
}))

interface Terminal {
  readonly process: InsideProcess
  readonly printed: ReturnType<typeof tail>
  ended: { readonly exitCode: number; readonly signal: null } | undefined
}

/** The terminal methods of the Agent Client Protocol: commands in the folder that is worked in. */
export function makeTerminals(inside: Inside, folder: string) {
  const open = new Map<string, Terminal>()
  let made = 0
  const find = (params: unknown): Terminal => {
    const { terminalId } = parse(schemas().one, params)
    const found = open.get(terminalId)
    if (found) return found
    throw new RefusedCall(-32002, `there is no terminal ${terminalId}`)
  }
  return {
    'terminal/create': (params: unknown) => {
      if (open.size >= mostTerminals) {
        throw new RefusedCall(-32000, `${mostTerminals} terminals are open: release some`)
      }
      const { outputByteLimit, ...asked } = parse(schemas().create, params)
      const process = inside.start({
        words: wordsIn(folder, asked),
        folder,
        variables: Object.fromEntries((asked.env ?? []).map(({ name, value }) => [name, value])),
      })
      process.finish()
      const most = Math.min(outputByteLimit ?? mostKept, mostKept)
      const terminal: Terminal = { process, printed: tail(process.output, most), ended: undefined }
      // A terminal shows both in one.
      process.complaints.on('data', chunk => process.output.emit('data', chunk))
      void process.exited.then(({ code }) => {
        terminal.ended = { exitCode: code, signal: null }
      })
      const id = `terminal-${++made}`
      open.set(id, terminal)
      return { terminalId: id }
    },
    'terminal/output': (params: unknown) => {
      const { printed, ended } = find(params)
      return {
        output: printed.text(),
        truncated: printed.isCut(),
        ...(ended && { exitStatus: ended }),
      }
    },
    'terminal/wait_for_exit': async (params: unknown) => {
      const { code } = await find(params).process.exited
      return { exitCode: code, signal: null }
    },
    'terminal/kill': (params: unknown) => find(params).process.kill(),
    'terminal/release': (params: unknown) => {
      find(params).process.kill()
      open.delete(parse(schemas().one, params).terminalId)
    },
  }
}

type Asked = Pick<z.output<ReturnType<typeof schemas>['create']>, 'command' | 'args' | 'cwd'>

/** The words of a command that begins in a folder within the workspace; a whole line is one for the shell. */
function wordsIn(folder: string, { command, args, cwd }: Asked): readonly string[] {
  const isLine = (args ?? []).length === 0 && /\s/.test(command)
  const words = isLine ? ['/bin/sh', '-c', command] : [command, ...(args ?? [])]
  const script = `root=$(pwd -P) && cd -- "$1" && case "$(pwd -P)/" in "$root"/*) shift; exec "$@" ;; esac
echo "$1 lies outside the workspace" >&2; exit 126`
  return ['/bin/sh', '-c', script, 'sh', cwd ?? folder, ...words]
}
