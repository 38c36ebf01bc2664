import { parsePartName } from '../../base/core/names/part-name.ts'
import { findPart } from '../../base/core/names/part-options.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Distillation, Shaping, VoidTurnShaping } from './shape.ts'

/** Shaping as it is named on a command line. */
export interface ShapingOptions {
  /** `soft:maximum=N,buffer=N,factor=C,alone=true`. */
  readonly overlong?: string | undefined
  /** `alone` or `added`, with a `coefficient`. */
  readonly distill?: string | undefined
  /** `mask` or `penalty`, with a `definition`; a penalty has a `size`. */
  readonly voidTurns?: string | undefined
  readonly klPenalty?: number | undefined
  readonly klIn?: 'loss' | 'reward' | undefined
  /** Whether a reference and a teacher were named. */
  readonly has: { readonly reference: boolean; readonly teacher: boolean }
}

/** Reads shaping; if a policy that it needs was not named, the error says how to name it. */
export function readShaping({
  overlong,
  distill,
  voidTurns,
  klPenalty = 0,
  klIn,
  has,
}: ShapingOptions): Shaping {
  if (klIn === 'reward' && klPenalty > 0 && !has.reference) {
    throw new SettingError('--kl-in reward needs the policy to stay near to: --reference POLICY')
  }
  if (distill !== undefined && !has.teacher) {
    throw new SettingError(`--distill ${distill} needs whom to learn from: --teacher POLICY`)
  }
  return {
    ...(overlong !== undefined && { overlong: readOverlong(overlong) }),
    ...(distill !== undefined && { distillation: readDistillation(distill) }),
    ...(voidTurns !== undefined && { voidTurns: readVoidTurns(voidTurns) }),
    ...(klIn === 'reward' && klPenalty > 0 && { kl: { coefficient: klPenalty } }),
  }
}

const overlongs = {
  soft: { options: { maximum: 'count', buffer: 'count', factor: 'amount', alone: 'switch' } },
} as const

function readOverlong(text: string): NonNullable<Shaping['overlong']> {
  const { values } = findPart('overlong penalty', text, overlongs)
  const { maximum, buffer, factor = 1 } = values as Partial<Record<string, number>>
  if (maximum === undefined || buffer === undefined || buffer > maximum) {
    throw new Error(
      `overlong penalty "${text}" needs a maximum and a buffer within it, as in soft:maximum=2048,buffer=512`,
    )
  }
  return { maximum, buffer, factor, ...(values.alone === true && { alone: true }) }
}

const distillations = {
  alone: { options: { coefficient: 'amount' } },
  added: { options: { coefficient: 'amount' } },
} as const

function readDistillation(text: string): Distillation {
  const { values } = findPart('distillation', text, distillations)
  const { coefficient = 1 } = values as Partial<Record<string, number>>
  return { mode: parsePartName(text).name as Distillation['mode'], coefficient }
}

const definition = ['general', 'simpletir'] as const
const voidTurnKinds = {
  mask: { options: { definition } },
  penalty: { options: { definition, size: 'amount' } },
} as const

function readVoidTurns(text: string): VoidTurnShaping {
  const { values } = findPart('treatment of void turns', text, voidTurnKinds)
  const { definition = 'general', size = 1 } = values as Partial<
    Extract<VoidTurnShaping, { kind: 'penalty' }>
  >
  const kind = parsePartName(text).name as VoidTurnShaping['kind']
  return kind === 'mask' ? { kind, definition } : { kind, definition, size }
}
