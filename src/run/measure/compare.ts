import { existsSync } from 'node:fs'
import { type Group, isHeldOut, isOfAnother } from '../../base/core/group.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { attemptMeans } from '../../base/math/attempts.ts'
import { mean } from '../../base/math/statistics.ts'
import { readManifest } from '../store/run-folder.ts'
import { openRunReader, type RunReader } from '../store/store.ts'
import type { RunByTask, TaskMeans } from './compare-tasks.ts'
import { makeMeasure } from './measure.ts'

/** How a run is read for a comparison. */
export interface ByTaskOptions {
  /** The reward from which on an attempt counts as a success. @default as the run says */
  readonly successAt?: number
}

/**
 * Reads the means of a run by task, measured as `evaluate` measures them. Of a training run, `RUN@before`, `RUN@after`
 * and `RUN@STEP` are its held-out tasks at that step, and `RUN@training` is what it learned from; a training run as a
 * whole is refused, since its policy changed meanwhile.
 */
export async function readByTask(name: string, options: ByTaskOptions = {}): Promise<RunByTask> {
  const { run, part } = splitName(name)
  const { config, kind } = await readManifest(run)
  const successAt =
    options.successAt ?? (typeof config.successAt === 'number' ? config.successAt : 1)
  await using reader = await openRunReader(run)
  const isWanted = await readPart(reader, { name, part, kind })
  const measure = makeMeasure({ successAt })
  const found = new Map<string, Found>()
  for await (const { group } of reader.groups()) {
    if (isOfAnother(group) || !isWanted(group)) continue
    const key = group.seat === undefined ? group.task : `${group.task} (${group.seat})`
    const { chances, rewards } = measure.add(group)
    const { chances: c, rewards: r, tokens } = found.get(key) ?? nothing
    found.set(key, {
      chances: [...c, ...chances],
      rewards: [...r, ...rewards],
      tokens: [...tokens, ...tokensOf(group)],
    })
  }
  const scored = [...found].filter(([, { chances }]) => chances.length > 0)
  return {
    run: name,
    successAt,
    tasks: new Map(scored.map(([task, each]) => [task, meansOf(each)])),
  }
}

/** One number per attempt that was scored. */
interface Found {
  readonly chances: readonly number[]
  readonly rewards: readonly number[]
  readonly tokens: readonly number[]
}

const nothing: Found = { chances: [], rewards: [], tokens: [] }

function meansOf({ chances, rewards, tokens }: Found): TaskMeans {
  return {
    success: mean(chances),
    reward: mean(rewards),
    tokens: mean(tokens),
    attempts: chances.length,
  }
}

function tokensOf({ members }: Group): readonly number[] {
  return attemptMeans(
    members.map(({ tree, trajectory }) => ({
      tree,
      share: trajectory.share,
      value: trajectory.usage.sampled,
    })),
  )
}

/** A folder whose own name has an @ is a run without a part. */
function splitName(name: string): { readonly run: string; readonly part: string | undefined } {
  const at = name.lastIndexOf('@')
  if (at < 0 || existsSync(name)) return { run: name, part: undefined }
  return { run: name.slice(0, at), part: name.slice(at + 1) }
}

/** Which groups a part of a run has. */
async function readPart(
  reader: RunReader,
  {
    name,
    part,
    kind,
  }: { readonly name: string; readonly part: string | undefined; readonly kind: string },
): Promise<(group: Group) => boolean> {
  if (kind !== 'train') {
    if (part === undefined) return () => true
    throw new SettingError(`${name}: only training runs have parts, and this is a run of ${kind}`)
  }
  const steps = await heldOutSteps(reader)
  const ends = steps.length > 0 ? { before: steps[0]!, after: steps.at(-1)! } : {}
  const step = Object.hasOwn(ends, part ?? '') ? ends[part as 'before'] : Number(part || Number.NaN)
  if (part === 'training') return group => !isHeldOut(group)
  if (step !== undefined && steps.includes(step)) {
    return group => isHeldOut(group) && group.step === step
  }
  const known = [...Object.keys(ends), ...steps, 'training'].map(each => `@${each}`).join(', ')
  const run = name.slice(0, part === undefined ? undefined : -part.length - 1)
  const what = part === undefined ? 'its policy changed while it ran' : `it has no part "${part}"`
  throw new SettingError(`${run} is a training run: ${what}. Say which part of it, of ${known}`)
}

async function heldOutSteps(reader: RunReader): Promise<readonly number[]> {
  const steps = new Set<number>()
  for await (const { group } of reader.groups()) if (isHeldOut(group)) steps.add(group.step!)
  return [...steps].sort((a, b) => a - b)
}
