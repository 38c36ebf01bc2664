import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { parseForkAt } from '../../run/run/fork.ts'
import { claimRunFolder } from '../../run/store/run-folder.ts'
import type { TryAnswer, TryRequest } from './answers.ts'
import type { Library } from './library.ts'
import { shownFolder } from './run-files.ts'

/** Runs `espalier fork` with these arguments in a separate process; returns its stdout and stderr. */
export type RunFork = (
  words: readonly string[],
  call: { readonly signal: AbortSignal; readonly tell: (line: string) => void },
) => Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>

/** A request that cannot be tried, with what could be. */
class BadTryError extends Error {
  override name = 'BadTryError'
  readonly statusCode = 400
}

const mostSamples = 64
const mostAtOnce = 2

interface Trying {
  answer: TryAnswer
  readonly started: number
  readonly lines: string[]
}

/** Forks that the page asked for; each goes on in a process of its own. */
export class Tries implements AsyncDisposable {
  readonly #library: Library
  readonly #runFork: RunFork
  readonly #tries = new Map<string, Trying>()
  readonly #working = new Set<Promise<void>>()
  readonly #closing = new AbortController()

  constructor(library: Library, runFork: RunFork) {
    this.#library = library
    this.#runFork = runFork
  }

  /** Begins a fork; gives the name it can be asked about by. */
  async begin(runName: string, body: unknown): Promise<string> {
    const run = await this.#library.open(runName)
    const { policies, canTry } = await run.answer(true)
    if (!canTry) {
      throw new BadTryError(
        `${runName} cannot be forked: it does not say how its worlds are opened`,
      )
    }
    const request = readRequest(body, policies)
    // The fork's process would say so too, but only after it has begun.
    await run.trajectory(request.id)
    if (this.#working.size >= mostAtOnce) {
      throw new BadTryError(`${mostAtOnce} forks are under way: wait for one of them`)
    }
    const name = randomUUID()
    const trying: Trying = {
      answer: { kind: 'working', seconds: 0, lines: [] },
      started: performance.now(),
      lines: [],
    }
    this.#tries.set(name, trying)
    const work = this.#work(trying, resolve(run.folder), { ...request, runName })
      .catch((error: unknown) => {
        trying.answer = { kind: 'failed', problem: (error as Error).message }
      })
      .finally(() => this.#working.delete(work))
    this.#working.add(work)
    return name
  }

  answer(name: string): TryAnswer | undefined {
    const trying = this.#tries.get(name)
    if (trying?.answer.kind !== 'working') return trying?.answer
    const seconds = (performance.now() - trying.started) / 1000
    return { kind: 'working', seconds, lines: trying.lines.slice(-3) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#working)
  }

  async #work(
    trying: Trying,
    folder: string,
    request: TryRequest & { runName: string },
  ): Promise<void> {
    // The fork's process changes to the run's own directory, so both paths are absolute.
    await using claimed = await claimRunFolder(undefined, dirname(folder))
    const { out } = claimed
    const words = [
      'fork',
      folder,
      request.id,
      '--at',
      request.at,
      '--samples',
      String(request.samples),
    ]
    if (request.policy !== undefined) words.push('--policy', request.policy)
    if (request.edit !== undefined && request.edit !== '') {
      const file = join(await this.#library.scratch(), `edit-${randomUUID()}.txt`)
      await writeFile(file, request.edit)
      words.push('--edit', file)
    }
    const tell = (line: string): void => void trying.lines.push(line)
    const signal = this.#closing.signal
    const { stdout, stderr } = await this.#runFork([...words, '--out', out, '--json'], {
      signal,
      tell,
    })
    const done = readForked(stdout)
    if (!done) {
      const said = stderr
        .trim()
        .split('\n')
        .at(-1)
        ?.replace(/^espalier: /, '')
      trying.answer = { kind: 'failed', problem: said || 'the fork ended without a result' }
      return
    }
    const run = this.#library.addRun(out, `${shownFolder(out)}, forked from ${request.id}`)
    trying.answer = { kind: 'done', run, ...done }
  }
}

/** Reads what a page asks for; anything else is refused with what is possible. */
function readRequest(body: unknown, policies: readonly string[]): TryRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new BadTryError('a fork is asked for by an object with id, at and samples')
  }
  const { id, at, samples, edit, policy } = body as Readonly<Record<string, unknown>>
  // What begins with a dash would be taken for a flag of the fork's process.
  if (typeof id !== 'string' || id === '' || id.startsWith('-')) {
    throw new BadTryError('id names a trajectory to fork')
  }
  if (typeof samples !== 'number' || !isCount(samples)) {
    const got = JSON.stringify(samples)
    throw new BadTryError(`samples is a whole number from 1 to ${mostSamples}, not ${got}`)
  }
  if (edit !== undefined && typeof edit !== 'string') throw new BadTryError('edit is a text')
  // Only listed policies: viewers must not be able to make this machine send requests anywhere.
  const known = policies.find(each => each === policy)
  if (policy !== undefined && known === undefined) {
    throw new BadTryError(`policy is one of ${policies.join(', ')}`)
  }
  return {
    id,
    at: readPlace(at),
    samples,
    ...(edit !== undefined && { edit }),
    ...(known !== undefined && { policy: known }),
  }
}

function isCount(samples: number): boolean {
  return Number.isInteger(samples) && samples >= 1 && samples <= mostSamples
}

function readPlace(at: unknown): string {
  if (typeof at !== 'string') {
    throw new BadTryError('at is a text: a turn as "3", or a token as "t512"')
  }
  try {
    parseForkAt(at)
    return at
  } catch (error) {
    throw new BadTryError((error as Error).message)
  }
}

type Done = Omit<Extract<TryAnswer, { kind: 'done' }>, 'kind' | 'run'>

/** What the last line that `espalier fork --json` printed says. */
function readForked(stdout: string): Done | undefined {
  try {
    const line = JSON.parse(stdout.trim().split('\n').at(-1)!) as Partial<Done> & {
      readonly group?: string
    }
    if (typeof line.group !== 'string') return undefined
    return {
      group: line.group,
      value: line.value ?? null,
      before: line.before ?? null,
      given: line.given ?? 0,
      turn: line.turn ?? 0,
    }
  } catch {
    return undefined
  }
}
