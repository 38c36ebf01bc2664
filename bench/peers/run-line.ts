import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { openFixedServer } from '../fixed-server.ts'
import { type Comparison, compare, type Line, type Printed, type Side, type Turns } from './line.ts'

/** How a line is run. */
export interface RunOptions {
  /** The Python that has the peers' packages. */
  readonly python: string
  /** How often each side takes its turn. */
  readonly turns: number
  /** Called before each side's turn. */
  readonly onTurn?: (side: string, turn: number) => void
}

/** What a line gave: its comparisons, and the peers that could not run. */
export interface LineResult {
  readonly comparisons: readonly Comparison[]
  readonly missing: readonly { readonly peer: string; readonly reason: string }[]
}

/** A side that cannot run here exits with this, and says why on its standard error. */
const cannotRun = 3

/** Lets ours and each peer take turns at the same work, so that other load affects all of them. */
export async function runLine(line: Line, options: RunOptions): Promise<LineResult> {
  await using server = line.answer ? await openFixedServer(line.answer) : undefined
  const work = JSON.stringify({ ...line.work, ...(server && { url: server.url }) })
  const ours = { name: 'espalier', program: line.ours }
  const taken = new Map<Side, Printed[]>([ours, ...line.peers].map(side => [side, []]))
  const missing = new Map<Side, string>()
  for (let turn = 1; turn <= options.turns; turn++) {
    for (const [side, printed] of taken) {
      if (missing.has(side)) continue
      options.onTurn?.(side.name, turn)
      const result = await runSide(side, { work, python: options.python })
      if ('missing' in result) missing.set(side, result.missing)
      else printed.push(...result)
    }
  }
  const failed = missing.get(ours)
  if (failed) throw new Error(`Our own side of "${line.name}" failed: ${failed}`)
  return {
    comparisons: line.peers
      .filter(peer => !missing.has(peer))
      .flatMap(peer =>
        line.measures.map(measure =>
          compare(line, measure, {
            ours: taken.get(ours) ?? [],
            peer,
            theirs: taken.get(peer) ?? [],
          }),
        ),
      )
      // A client that does nothing else has no rollouts whose memory it could tell.
      .filter(({ theirs }) => !Number.isNaN(theirs.median)),
    missing: [...missing].map(([{ name }, reason]) => ({ peer: name, reason })),
  }
}

interface Running {
  readonly work: string
  readonly python: string
}

/** Runs the programs of a side one after the other; their figures are one turn. */
async function runSide(side: Side, { work, python }: Running): Promise<Turns> {
  let turn: Printed = { figures: {} }
  for (const program of [side.program].flat()) {
    const printed = await runProgram(program, { work, python: side.python ?? python })
    if ('missing' in printed) return printed
    turn = { ...turn, ...printed, figures: { ...turn.figures, ...printed.figures } }
  }
  return [turn]
}

async function runProgram(
  program: string,
  { work, python }: Running,
): Promise<Printed | { readonly missing: string }> {
  const isPython = program.endsWith('.py')
  const file = fileURLToPath(new URL(`${isPython ? 'theirs' : 'ours'}/${program}`, import.meta.url))
  const command: readonly [string, string[]] = isPython
    ? [python, [file]]
    : [process.execPath, [...(program.endsWith('.ts') ? ['--import', 'tsx'] : []), file]]
  const { code, stdout, stderr } = await runCommand(...command, work)
  const last = stdout.trim().split('\n').at(-1) ?? ''
  if (code === 0) return JSON.parse(last) as Printed
  const reason = stderr.trim().split('\n').at(-1) ?? `it ended with ${code}`
  return { missing: code === cannotRun ? reason : `failed: ${reason}` }
}

async function runCommand(
  command: string,
  args: string[],
  input: string,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    // One thread each, so that the two sides do the same on the same core.
    env: { ...process.env, OMP_NUM_THREADS: '1', TOKENIZERS_PARALLELISM: 'false' },
  })
  const text = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk: string) => {
      text[stream] += chunk
    })
  }
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve)
  })
  child.stdin.on('error', () => {}).end(input)
  return { code: await ended, ...text }
}
