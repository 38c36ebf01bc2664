import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { checkSource, Library } from '../../../doors/view/library.ts'
import { serveView } from '../../../doors/view/serve.ts'
import { writeStatic } from '../../../doors/view/static-file.ts'
import type { RunFork } from '../../../doors/view/tries.ts'
import { refuseForeign } from '../../../run/exchange/output-file.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { isRun } from '../../../run/store/run-folder.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'
import { counted, doorFlags, readDoor, tokenVariable } from '../../listening.ts'

/** Shows runs in a browser. */
export const viewCommand: Command = {
  name: 'view',
  usage: '[RUN|FILE…]',
  about:
    'Serves a page on this machine over runs and files that `import` reads: curves, groups, conversations\n' +
    'and their tokens, trees, comparisons, and forks that are continued from the page. Without a word: the\n' +
    'runs in runs/. Works while a run is being written. With --static the page and what it shows are\n' +
    'written into one file that needs no server and no network. Beyond this machine (--host) everybody\n' +
    'needs the token in the link, taken from ESPALIER_TOKEN or made for the occasion.',
  examples: [
    'espalier view runs/0001',
    'espalier view runs/0001 runs/0002 --port 8080',
    'espalier view runs/0001 --static run.html',
  ],
  settings: [],
  own: {
    port: { help: 'The port; 0 takes any free one (default: 8400)', argument: 'N' },
    ...doorFlags,
    static: { help: 'Write one self-contained HTML file instead of serving', argument: 'FILE' },
    most: {
      help: 'With --static: the most megabytes of trajectories (default: 16)',
      argument: 'N',
    },
    model: { help: 'A model folder to write tokens as text with', argument: 'DIR' },
    trust: { help: 'Forks from the page run the code and ask the servers that runs name' },
  },
  positionalCount: [0, 100],
  run: runView,
}

async function runView(invocation: Invocation): Promise<number> {
  const { positionals: words, own } = invocation
  const sources = words.length > 0 ? words : runsIn('runs')
  for (const source of sources) checkSource(source)
  const target = own.static
  refuseUnused(own)
  if (target !== undefined) checkTarget(target, sources)
  await using library = new Library(own.model === undefined ? {} : { model: own.model })
  for (const source of sources) await openNamed(undefined, () => library.add(source))
  if (target !== undefined) return await writeFileOf(library, target, invocation)
  return await serve(library, invocation)
}

/** Refuses flags that would be ignored: those of the server beside --static, and the other way round. */
function refuseUnused({ static: target, ...own }: Invocation['own']): void {
  const ignored = target === undefined ? ['most'] : ['port', 'host', 'token-variable', 'trust']
  const unused = ignored.find(name => own[name] !== undefined)
  if (unused === undefined) return
  const why = target === undefined ? 'it needs --static' : '--static serves nothing'
  throw new MisuseError(`--${unused} changes nothing here: ${why}`)
}

/** The runs of a folder, oldest first. */
function runsIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .sort()
    .map(name => join(folder, name))
    .filter(isRun)
}

/** Refuses to write the page over what it shows. */
function checkTarget(file: string, sources: readonly string[]): void {
  if (sources.some(source => resolve(source) === resolve(file)))
    throw new MisuseError(`--static ${file}: this is what is shown; name another file`)
}

async function writeFileOf(
  library: Library,
  file: string,
  { own, json, terminal }: Invocation,
): Promise<number> {
  if (library.names.length === 0)
    throw new MisuseError('name a run to write: espalier view RUN --static FILE')
  refuseForeign('--static', file, 'page')
  const { most = 16 } = counted('most', own.most)
  const written = await writeStatic(library, file, { bytes: most * 1024 * 1024 })
  if (json) terminal.print(JSON.stringify({ file, ...written }))
  else {
    terminal.print(
      `${file}  ${(written.bytes / 1024 / 1024).toFixed(1)} MB  ${written.groups} groups`,
    )
    if (written.leftOut > 0) {
      terminal.print(
        `${written.leftOut} more groups are listed without their trajectories: --most raises it`,
      )
    }
  }
  return 0
}

async function serve(library: Library, invocation: Invocation): Promise<number> {
  const { own, json, terminal, signal } = invocation
  const { port = 8400 } = counted('port', own.port)
  let made: string | undefined
  const door = readDoor(invocation, () => (made = randomBytes(24).toString('base64url')))
  const trusts = own.trust === undefined ? [] : ['--trust']
  const runFork: RunFork = (given, call) => forkInProcess([...given, ...trusts], call)
  await using served = await openNamed(`--port ${port}`, () =>
    serveView(library, { ...door, port, runFork }),
  )
  const url = made === undefined ? served.url : `${served.url}/?token=${made}`
  const what =
    library.names.join(', ') || 'nothing (runs/ holds no run; files can be dropped on the page)'
  if (json) terminal.print(JSON.stringify({ url, runs: library.names }), made)
  else terminal.print(`viewing ${what} at ${url}`, made)
  if (door.token !== undefined && made === undefined) {
    terminal.tell(
      `open it once with ?token= and the token in ${tokenVariable(own)} behind the address`,
    )
  }
  if (!signal.aborted) await once(signal, 'abort')
  return 0
}

/** Forks with this program in a process of its own: it may change folders, and may fail. */
const forkInProcess: RunFork = async (words, { signal, tell }) => {
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1]!, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
    for (const line of chunk.toString().split('\n')) if (line.trim() !== '') tell(line)
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code: code ?? 1, stdout, stderr }
}
