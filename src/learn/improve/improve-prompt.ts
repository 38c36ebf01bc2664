import { mkdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Environment, Task } from '../../base/core/environment.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Speaker } from '../../base/core/speaker.ts'
import { type PairedDifference, pairedDifference } from '../../base/math/bounds/paired.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import { mean } from '../../base/math/statistics.ts'
import { isAgent } from '../../engine/capture/agent.ts'
import type { Prompt } from '../../engine/environments/prompted.ts'
import { speakerOf } from '../../engine/policies/speaker.ts'
import { openRollParts } from '../../run/run/open-parts.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import type { RollOptions } from '../../run/run/roll-options.ts'
import { readPrompt } from '../../run/settings/open-prompt.ts'
import { openSpeaker } from '../../run/settings/open-speaker.ts'
import { defaults } from '../../run/settings/settings.ts'
import { replaceFile } from '../../run/store/run-folder.ts'
import { type SplitTasks, splitTasks } from '../../run/tasks/split-tasks.ts'
import type { TaskSource } from '../../run/tasks/tasks.ts'
import { type Candidate, meanScore, type Parts, partsOf, promptOf } from './candidate.ts'
import { type EvolveOptions, evolve } from './evolve.ts'
import { improvementReport } from './report.ts'
import { makeTries, type Tries, type Try } from './tries.ts'

/** How a prompt is improved. */
export interface ImproveOptions extends Omit<RollOptions, 'out' | 'prompt' | 'resumes' | 'retry'> {
  /** The folder of the prompt, its report and everything that was tried. One that was begun is gone on with. */
  readonly out: string
  /** Sampled tokens of the policy and of whoever reflects; the measurement before and after is not counted. @default 200000 */
  readonly tokens?: number
  /** Whoever reads attempts and rewrites: a policy's URI. @default the policy itself */
  readonly reflector?: string
  /** Tasks that one reflection looks at. @default 3 */
  readonly minibatch?: number
  /** Most tokens of one reflection. @default 1024 */
  readonly reflectionTokens?: number
  /** Tasks to measure on, before and after; or how many. @default a fifth of the tasks */
  readonly heldOut?: TaskSource
  /** The prompt to begin with. @default what the environment says */
  readonly prompt?: Prompt | string
  /** The reward from which on an attempt counts as a success. @default 1 */
  readonly successAt?: number
  readonly onCandidate?: EvolveOptions['onCandidate']
}

/** What improving a prompt gave. */
export interface Improved {
  readonly prompt: Prompt
  /** On held-out tasks: the share of attempts that succeeded. */
  readonly successBefore: number
  readonly successAfter: number
  /** Paired by held-out task. */
  readonly difference: PairedDifference
  /** Means over the tasks that chose the prompt. */
  readonly validation: { readonly before: number; readonly after: number }
  readonly candidates: number
  readonly rejected: number
  /** What finding it took; measuring it on held-out tasks is apart. */
  readonly tokens: {
    readonly policy: number
    readonly reflection: number
    readonly measuring: number
  }
  readonly tasks: {
    readonly reflected: number
    readonly validation: number
    readonly heldOut: number
  }
}

const usual = { tokens: 200_000, minibatch: 3, reflectionTokens: 1024, successAt: 1 }

/** Rewrites what a policy is told until it does better: reflection on attempts, kept by what it earns on other tasks. */
export async function improvePrompt(
  environment: Environment | string,
  tasks: TaskSource,
  options: ImproveOptions,
): Promise<Improved> {
  const { tokens, minibatch, reflector, heldOut, onCandidate, reflectionTokens, ...rest } = options
  const { out, prompt, successAt = usual.successAt, ...rolling } = rest
  mkdirSync(out, { recursive: true })
  await using opened = await openRollParts(environment, undefined, {
    ...rolling,
    group: rolling.group ?? 1,
  })
  const { parts } = opened
  const begun = typeof prompt === 'string' ? await readPrompt(prompt) : prompt
  if (isAgent(parts.environment)) throw ofAgent(parts.environment)
  const { seed = defaults.seed, signal = new AbortController().signal } = options
  const split = await splitTasks(parts.environment, tasks, {
    seed,
    ...(heldOut !== undefined && { heldOut }),
  })
  const sets = { ...halves(split.train, seed), heldOut: split.heldOut }
  const tries = makeTries({ parts, successAt, file: join(out, 'tries.jsonl') })
  const first = await firstParts(parts, { task: sets.reflected[0]!, prompt: begun, signal })
  const evolving: EvolveOptions = {
    tries,
    speaker: await speakerFor(reflector, parts),
    parts: first,
    reflected: sets.reflected,
    validation: sets.validation,
    budget: tokens ?? usual.tokens,
    minibatch: minibatch ?? usual.minibatch,
    perfect: successAt,
    seed,
    reflectionTokens: reflectionTokens ?? usual.reflectionTokens,
    onCandidate: onCandidate ?? (() => {}),
    signal,
  }
  const { candidates, best, rejected } = await evolve(evolving)
  const found = { ...tries.tokens }
  const measured = await measure(tries, sets.heldOut, [candidates[0]!, candidates[best]!])
  const improved: Improved = {
    prompt: promptOf(candidates[best]!.parts),
    ...measured,
    validation: { before: meanScore(candidates[0]!), after: meanScore(candidates[best]!) },
    candidates: candidates.length,
    rejected,
    tokens: { ...found, measuring: tries.tokens.policy - found.policy },
    tasks: {
      reflected: sets.reflected.length,
      validation: sets.validation.length,
      heldOut: sets.heldOut.length,
    },
  }
  await writeImproved(out, improved, split)
  return improved
}

function ofAgent({ name }: Environment): SettingError {
  return new SettingError(
    `improve-prompt is for environments: agent "${name}" decides itself what its model is told`,
  )
}

/** Most tasks that choose between prompts: each new prompt is tried on all of them. */
const mostValidation = 32

/** Tasks to reflect on, and others to choose by. */
function halves(
  tasks: readonly Task[],
  seed: number,
): Pick<EvolveOptions, 'reflected' | 'validation'> {
  if (tasks.length < 4) {
    throw new SettingError(
      `${tasks.length} tasks are too few besides the held-out ones: some are reflected on, others choose; give at least 4`,
    )
  }
  const mixed = shuffle(tasks, random(seedOf(seed, 'reflected')))
  const half = Math.min(mostValidation, Math.floor(tasks.length / 2))
  return { validation: mixed.slice(0, half), reflected: mixed.slice(half) }
}

const lanes = makeLanes({ policy: 1, tools: 16, environment: 1, reward: 1 })

/** The prompt to begin with: what the environment tells at its first task, with what was given in its place. */
async function firstParts(
  { environment }: Pick<RollParts, 'environment'>,
  {
    task,
    prompt,
    signal,
  }: { readonly task: Task; readonly prompt: Prompt | undefined; readonly signal: AbortSignal },
): Promise<Parts> {
  await using world = await environment.open(task, { signal, seed: 0, lanes })
  const [first] = world.opening
  const system = first.role === 'system' && typeof first.content === 'string' ? first.content : ''
  const tools = world.tools.map(({ function: { name, description } }) => [name, description ?? ''])
  return partsOf({
    system: prompt?.system ?? system,
    tools: { ...Object.fromEntries(tools), ...prompt?.tools },
  })
}

async function speakerFor(
  reflector: string | undefined,
  { renderer, policy }: Pick<RollParts, 'renderer' | 'policy'>,
): Promise<Speaker> {
  return reflector === undefined ? speakerOf(renderer, policy) : await openSpeaker(reflector)
}

/** Both prompts on tasks that neither reflection nor choice has seen. */
async function measure(
  tries: Tries,
  heldOut: readonly Task[],
  [before, after]: readonly [Candidate, Candidate],
): Promise<Pick<Improved, 'successBefore' | 'successAfter' | 'difference'>> {
  const first = await tries.of(before.parts, heldOut)
  const last = await tries.of(after.parts, heldOut)
  const both = heldOut.flatMap((_, place) =>
    first[place]!.scored === null || last[place]!.scored === null ? [] : [place],
  )
  if (both.length === 0) throw new Error('No held-out task could be scored with both prompts.')
  const share = (tried: readonly Try[]): number => mean(both.map(place => tried[place]!.solved))
  return {
    successBefore: share(first),
    successAfter: share(last),
    difference: pairedDifference(both.map(place => last[place]!.solved - first[place]!.solved)),
  }
}

async function writeImproved(
  out: string,
  improved: Improved,
  { train, heldOut }: SplitTasks,
): Promise<void> {
  const lines = (tasks: readonly Task[]): string =>
    tasks.map(({ id, data }) => `${JSON.stringify({ ...(data as object), id })}\n`).join('')
  await replaceFile(join(out, 'prompt.json'), `${JSON.stringify(improved.prompt, null, 2)}\n`)
  await replaceFile(join(out, 'improve.json'), `${JSON.stringify(improved, null, 2)}\n`)
  await writeFile(join(out, 'tasks.jsonl'), lines(train))
  await writeFile(join(out, 'held-out.jsonl'), lines(heldOut))
  await replaceFile(join(out, 'report.md'), improvementReport(improved))
}
