import { isUserPart } from '../../settings/user-part.ts'
import type { RollOptions } from '../roll-options.ts'

/**
 * Who uses an option: the threads, which open it again by its name; the run itself, in the main
 * thread; or something that sees every sample and so keeps the run in one thread.
 */
const whose: Readonly<Record<keyof RollOptions, 'threads' | 'run' | 'one thread'>> = {
  policy: 'threads',
  servedModel: 'threads',
  logprobs: 'threads',
  keyVariable: 'threads',
  deadline: 'threads',
  retries: 'threads',
  record: 'one thread',
  model: 'threads',
  offline: 'threads',
  hub: 'threads',
  history: 'threads',
  markers: 'threads',
  templateVariables: 'threads',
  toolFormat: 'threads',
  reasoningFormat: 'threads',
  toolInstruction: 'threads',
  listen: 'run',
  tell: 'run',
  instruments: 'one thread',
  sentinels: 'run',
  metricsPort: 'run',
  metrics: 'run',
  traces: 'one thread',
  notify: 'run',
  seats: 'threads',
  strategy: 'threads',
  branch: 'threads',
  leaves: 'threads',
  stepHistory: 'threads',
  condense: 'threads',
  guards: 'threads',
  sampling: 'threads',
  limits: 'threads',
  onLength: 'threads',
  onTime: 'threads',
  stop: 'threads',
  topLogprobs: 'threads',
  reward: 'threads',
  judge: 'threads',
  rewardSeconds: 'threads',
  concurrency: 'run',
  adaptive: 'one thread',
  budget: 'run',
  seed: 'threads',
  split: 'threads',
  signal: 'run',
  out: 'run',
  resumes: 'run',
  unfinished: 'run',
  elsewhere: 'one thread',
  threads: 'run',
  config: 'run',
  group: 'run',
  advantage: 'run',
  weighting: 'run',
  reference: 'threads',
  teacher: 'threads',
  distill: 'threads',
  klPenalty: 'threads',
  klIn: 'threads',
  overlong: 'threads',
  proximal: 'threads',
  importance: 'threads',
  filters: 'run',
  sinks: 'run',
  refill: 'run',
  keep: 'run',
  overSample: 'run',
}

/** What is to be spread. */
export interface Spreading {
  readonly environment: object | string
  readonly options: RollOptions
}

/** The options that threads open a run with. */
export function threadOptions(options: RollOptions): RollOptions {
  const own = Object.entries(options).filter(
    ([name]) => whose[name as keyof RollOptions] === 'threads',
  )
  return Object.fromEntries(own) as Partial<RollOptions> as RollOptions
}

/**
 * What threads weigh whole groups with. Filters that are files or objects may remember what they judged, so
 * they stay in one place, and so does one that asks for the version of the moment.
 */
export function weighingOf({ advantage, weighting, filters = [] }: RollOptions): {
  readonly isNamed: boolean
  readonly options: Pick<RollOptions, 'advantage' | 'weighting' | 'filters'>
} {
  const isNamed = filters.every(
    filter => typeof filter === 'string' && !isUserPart(filter) && !/^stale\b/.test(filter),
  )
  const options = {
    ...(advantage !== undefined && { advantage }),
    ...(weighting !== undefined && { weighting }),
    filters,
  }
  return { isNamed, options: isNamed ? options : {} }
}

/** Why a run stays in one thread, in words; undefined if it may use several. */
export function reasonToStay({ environment, options }: Spreading): string | undefined {
  if (typeof environment !== 'string') {
    return 'its environment was given as an object, and a thread opens what it uses by name: give it as ./file.ts#export'
  }
  for (const [name, value] of Object.entries(options)) {
    const owner = whose[name as keyof RollOptions]
    if (value === undefined || value === false || owner === undefined || owner === 'run') continue
    if (owner === 'one thread' && !isEmptyList(value)) {
      return `${name} is about every sample of the run, and works in one thread`
    }
    if (owner === 'threads' && !isPlain(value)) {
      return `${name} was given as an object or a function, and a thread opens what it uses by name`
    }
  }
  return seatsOfPast(options) ? 'seats that past policies play are drawn in one thread' : undefined
}

/** The user's own files in a run: each thread has its own copy of their module state. */
export function ownFiles({ environment, options }: Spreading): readonly string[] {
  return [environment, Object.values(threadOptions(options))]
    .flat(3)
    .filter(part => typeof part === 'string')
    .filter(isCode)
}

const isCode = (part: string): boolean => isUserPart(part) && /\.[cm]?[jt]sx?(#|$)/.test(part)

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

function isPlain(value: unknown): boolean {
  try {
    structuredClone(value)
    return true
  } catch {
    return false
  }
}

function seatsOfPast({ seats }: RollOptions): boolean {
  return JSON.stringify(seats ?? '').includes('past')
}
