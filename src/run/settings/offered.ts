import type { Duplex } from 'node:stream'
import type { LateFactory } from '../../engine/environments/factory.ts'
import type { PolicyScheme } from '../../engine/policies/schemes.ts'
import type { Settings } from './settings.ts'

/** What higher floors offer this one by name. Each is loaded when it is named. */
export interface Offers {
  readonly environments: Readonly<Record<string, LateFactory>>
  readonly schemes: Readonly<Record<string, PolicyScheme>>
  /** By the name of their environment. */
  readonly benchmarks: Readonly<Record<string, () => Promise<Benchmark>>>
  /** The modules of this package that a user's own file may import, by specifier. */
  readonly modules: Readonly<Record<string, () => Promise<unknown>>>
  readonly serveMetrics: () => Promise<ServeMetrics>
  /** Where agents that are started here ask the model. */
  readonly openModelDoor: () => Promise<() => ModelDoor>
  /** The harnesses that `--agent` can name. */
  readonly harnesses: readonly string[]
  /** Folders of tasks by their scheme, as in `--tasks harbor:DIR`: how many there are. The scheme is their environment too. */
  readonly taskFolders: Readonly<Record<string, () => Promise<(path: string) => number>>>
}

/** A door for the requests of agents that are started here, on connections that somebody brings. */
export interface ModelDoor extends AsyncDisposable {
  take(connection: Duplex, attempt: ServedAttempt): void
}

/** An attempt whose agent asks over HTTP. */
export interface ServedAttempt {
  /** What every request brings as its key. */
  readonly token: string
  answer(request: Request, body: unknown): Promise<Response>
  /** Told of requests that were not let in. */
  refused(why: string): void
}

/** A benchmark of others: evaluated as its original does it, and told in the original's metrics and results. */
export interface Benchmark {
  /** The name of its figures in `--json`. */
  readonly name: string
  /** The steps after which the original ends a conversation. */
  readonly maxTurns: number
  /** The number of tasks of the evaluated split, which is rolled whole unless fewer are asked for. */
  countTasks(values: Settings): Promise<number>
  /** The original's metrics of a run; undefined if nothing was attempted. */
  measure(run: string): Promise<BenchmarkMeasured | undefined>
  /** Writes results as the original does. The file appears when it is whole. */
  writeResults(run: string, out: string): Promise<void>
}

/** A run in a benchmark's own metrics. */
export interface BenchmarkMeasured {
  readonly figures: object
  /** For people. */
  readonly lines: readonly string[]
}

/** Serves a text that is made anew for every request, at `/metrics` on this machine. */
export type ServeMetrics = (
  metrics: { text(): string },
  port: number,
) => Promise<{ readonly url: string } & AsyncDisposable>

let offers: Offers | undefined

/** Called once in every process and thread, by `src/offers.ts`. */
export function offer(given: Offers): void {
  offers = given
}

/** What is offered in this process. */
export function offered(): Offers {
  if (!offers) throw new Error('nothing is offered here: import src/offers.ts where this starts')
  return offers
}
