import type { Call } from '../../base/core/call.ts'
import type { Task } from '../../base/core/environment.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import { type Candidate, meanScore, type Parts } from './candidate.ts'
import { hasParts, merge, tasksToMergeOn } from './merge.ts'
import { bestOf, pickParent } from './pareto.ts'
import { reflect } from './reflect.ts'
import type { Tries, Try } from './tries.ts'

/** How prompts are evolved. */
export interface EvolveOptions extends Call {
  readonly tries: Tries
  /** Whoever writes new texts. */
  readonly speaker: Speaker
  /** The prompt to begin with; its parts are those that are rewritten. */
  readonly parts: Parts
  /** Tasks that are reflected on. */
  readonly reflected: readonly Task[]
  /** Tasks that decide which prompts are kept, never shown to whoever reflects. */
  readonly validation: readonly Task[]
  /** Sampled tokens, of the policy and of whoever reflects. */
  readonly budget: number
  /** Tasks that one reflection looks at. */
  readonly minibatch: number
  /** The reward of an attempt at which nothing can be better. */
  readonly perfect: number
  readonly seed: number
  /** Most tokens of one reflection. */
  readonly reflectionTokens: number
  readonly onCandidate: (candidate: Candidate, place: number) => void
}

/** What was found. */
export interface Evolved {
  readonly candidates: readonly Candidate[]
  readonly best: number
  /** Reflections, and the prompts that they gave and that were not better. */
  readonly iterations: number
  readonly rejected: number
}

/** Iterations without any new token, after which nothing new is to be expected. */
const mostIdle = 20
const mostMerges = 5
const mergeTasks = 5

/**
 * Reflective evolution of prompts (Agrawal et al. 2025, GEPA): a candidate of the Pareto front over validation tasks is
 * tried on a few tasks, one of its parts is rewritten after reading those attempts, and the new prompt is kept if it does
 * better on the same tasks; candidates that improved different parts are merged. Every draw is a function of the
 * seed and the iteration, so that a run that was cut short comes to the same end.
 */
export async function evolve(options: EvolveOptions): Promise<Evolved> {
  const { tries, budget, perfect, signal } = options
  const candidates: Candidate[] = [await validated(options, options.parts, [])]
  options.onCandidate(candidates[0]!, 0)
  const left = { merges: mostMerges, due: false, idle: 0, rejected: 0 }
  const isDone = (): boolean =>
    spentOf(tries) >= budget ||
    left.idle >= mostIdle ||
    meanScore(candidates[bestOf(candidates)]!) >= perfect - 1e-9
  let iteration = 0
  for (; !isDone(); iteration++) {
    signal.throwIfAborted()
    const before = spentOf(tries)
    const isMerge = left.due && left.merges > 0
    left.due = false
    const child = isMerge
      ? await mergedChild(options, candidates, iteration)
      : await reflectedChild(options, candidates, iteration)
    left.idle = spentOf(tries) === before ? left.idle + 1 : 0
    if (isMerge && child) left.merges--
    if (!child) continue
    if (!child.isBetter || hasParts(candidates, child.parts)) {
      left.rejected++
      continue
    }
    candidates.push(await validated(options, child.parts, child.parents))
    options.onCandidate(candidates.at(-1)!, candidates.length - 1)
    left.due = !isMerge
  }
  return { candidates, best: bestOf(candidates), iterations: iteration, rejected: left.rejected }
}

const spentOf = ({ tokens }: Tries): number => tokens.policy + tokens.reflection

async function validated(
  { tries, validation }: EvolveOptions,
  parts: Parts,
  parents: readonly number[],
): Promise<Candidate> {
  const scores = (await tries.of(parts, validation)).map(({ scored }) => scored ?? Number.NaN)
  return { parts, parents, scores }
}

/** A prompt that may become a candidate. */
interface Child {
  readonly parts: Parts
  readonly parents: readonly number[]
  readonly isBetter: boolean
}

async function reflectedChild(
  options: EvolveOptions,
  candidates: readonly Candidate[],
  iteration: number,
): Promise<Child | undefined> {
  const { tries, speaker, seed, perfect, reflectionTokens, signal } = options
  const place = pickParent(candidates, random(seedOf(seed, 'parent', iteration)))
  const { parts } = candidates[place]!
  const tasks = minibatchOf(options, iteration)
  const seen = await tries.of(parts, tasks)
  const traces = seen.flatMap(({ task, text, scored }) =>
    scored === null ? [] : [{ task, text, reward: scored }],
  )
  if (traces.every(({ reward }) => reward >= perfect - 1e-9)) return undefined
  const names = [...parts.keys()]
  const part = names[iteration % names.length]!
  const { text } = await tries.written(`${iteration}`, () =>
    reflect(
      speaker,
      { parts, part, traces },
      { signal, seed: (seed + iteration) % 2 ** 31, maxTokens: reflectionTokens },
    ),
  )
  if (text === undefined) return undefined
  const changed = new Map([...parts, [part, text]])
  const now = await tries.of(changed, tasks)
  return { parts: changed, parents: [place], isBetter: gained(seen, now) > 0 }
}

/** The next few tasks of an order that is shuffled anew after each pass. */
function minibatchOf(
  { reflected, minibatch, seed }: EvolveOptions,
  iteration: number,
): readonly Task[] {
  const size = Math.min(minibatch, reflected.length)
  const perPass = Math.floor(reflected.length / size)
  const order = shuffle(reflected, random(seedOf(seed, 'pass', Math.floor(iteration / perPass))))
  const start = (iteration % perPass) * size
  return order.slice(start, start + size)
}

async function mergedChild(
  options: EvolveOptions,
  candidates: readonly Candidate[],
  iteration: number,
): Promise<Child | undefined> {
  const { tries, validation, seed } = options
  const draw = random(seedOf(seed, 'merge', iteration))
  const merged = merge(candidates, parts => hasParts(candidates, parts), draw)
  if (!merged) return undefined
  const parents = [candidates[merged.first]!, candidates[merged.second]!] as const
  const places = tasksToMergeOn(parents, mergeTasks, draw)
  const now = await tries.of(
    merged.parts,
    places.map(place => validation[place]!),
  )
  const sum = now.reduce((total, { scored }) => total + (scored ?? 0), 0)
  const known = (candidate: Candidate): number =>
    places.reduce((total, place) => total + candidate.scores[place]!, 0)
  const isBetter = sum >= Math.max(...parents.map(known)) - 1e-9
  return { parts: merged.parts, parents: [merged.first, merged.second], isBetter }
}

/** How much more was earned now than before, on the tasks that were scored both times. */
function gained(before: readonly Try[], now: readonly Try[]): number {
  const scores = new Map(now.map(({ task, scored }) => [task, scored]))
  return before.reduce((sum, { task, scored }) => {
    const after = scores.get(task) ?? null
    return scored === null || after === null ? sum : sum + after - scored
  }, 0)
}
