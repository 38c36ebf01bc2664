import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Policy } from '../../base/core/policy.ts'
import { absences } from '../../base/core/process/absences.ts'
import { checkImportance } from '../../engine/weigh/importance.ts'
import type { Shaping } from '../../engine/weigh/shape.ts'
import { readShaping } from '../../engine/weigh/shaping.ts'
import { openNamed } from '../settings/open-named.ts'
import { openPolicy } from '../settings/open-policy.ts'
import { defaults } from '../settings/settings.ts'
import type { Scorers } from './attach-scores.ts'
import type { GroupOptions, RollOptions } from './roll-options.ts'

/** The options that shape rewards before they are compared, and advantages after. */
export type ShapingNames = Pick<
  GroupOptions,
  | 'overlong'
  | 'distill'
  | 'voidTurns'
  | 'klPenalty'
  | 'klIn'
  | 'reference'
  | 'teacher'
  | 'importance'
  | 'proximal'
>

/** Shaping of rewards and advantages as options name it, checked. */
export async function makeShaping(options: ShapingNames): Promise<Shaping> {
  const { overlong, distill, voidTurns, klPenalty, klIn, reference, teacher } = options
  const { importance = [], proximal } = options
  await openNamed(`--importance ${importance.join(' ')}`, async () =>
    checkImportance(importance, proximal),
  )
  const has = { reference: reference !== undefined, teacher: teacher !== undefined }
  const flag =
    distill !== undefined
      ? `--distill ${distill}`
      : voidTurns !== undefined
        ? `--void-turns ${voidTurns}`
        : '--overlong'
  const names = { overlong, distill, voidTurns, klPenalty, klIn, has }
  return await openNamed(flag, () => readShaping(names))
}

/** Opens the policies that score what is sampled; those passed as objects stay open. */
export async function makeScorers(
  { reference, teacher, proximal, ...asking }: RollOptions,
  policy: Policy,
  closing: (() => PromiseLike<void> | undefined)[],
): Promise<Scorers | undefined> {
  const scorers: { -readonly [Name in keyof Scorers]: Scorers[Name] } = {}
  for (const [name, given] of Object.entries({ reference, teacher })) {
    if (given === undefined) continue
    const opened = typeof given === 'object' ? given : await openScorer(name, given, asking)
    if (opened !== given) closing.push(() => opened[Symbol.asyncDispose]())
    if (!opened.capabilities.score) throw cannotScore(name, opened)
    scorers[name as 'reference' | 'teacher'] = opened
  }
  if (proximal === 'recompute') {
    if (!policy.capabilities.score) throw cannotScore('proximal recompute', policy)
    scorers.proximal = policy
  }
  return Object.keys(scorers).length > 0 ? scorers : undefined
}

/** Opens a policy that scores what another one sampled. */
export async function openScorer(
  name: string,
  uri: string | readonly string[],
  { keyVariable, deadline, retries }: Pick<RollOptions, 'keyVariable' | 'deadline' | 'retries'>,
): Promise<Policy> {
  const key = process.env[keyVariable ?? defaults.keyVariable]
  return await openNamed(`--${name} ${[uri].flat().join(' ')}`, () =>
    openPolicy(uri, {
      absences,
      ...(key !== undefined && { key }),
      deadlineSeconds: deadline ?? defaults.deadline,
      retries: retries === 0 ? false : { attempts: (retries ?? defaults.retries) + 1 },
    }),
  )
}

/** The error for a policy that scores nothing it did not sample. */
export function cannotScore(flag: string, { name }: Policy): SettingError {
  return new SettingError(
    `--${flag}: ${name} cannot give log-probabilities of tokens it did not sample; SGLang, vLLM and embedded models can`,
  )
}
