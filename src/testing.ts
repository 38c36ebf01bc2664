// For tests of environments and of code that uses Espalier.

import './offers.ts'
import {
  scripted as play,
  type ScriptedAnswer,
  type ScriptedPolicy,
} from './engine/policies/scripted.ts'
import { byteModel, openRenderer } from './run/settings/model-source.ts'

export {
  type CheckOptions,
  type CheckResult,
  checkEnvironment,
} from './engine/environments/check.ts'
export { replyOf } from './engine/environments/reply.ts'
export type { ScriptedAnswer, ScriptedPolicy } from './engine/policies/scripted.ts'

/** How a script is written. */
export interface ScriptOptions {
  /** The model folder whose tokens the script is written in. @default the byte model of this package */
  readonly model?: string
}

/** A policy that gives these answers in order; it keeps its requests for tests to inspect. */
export async function scripted(
  answers: readonly ScriptedAnswer[],
  { model = byteModel }: ScriptOptions = {},
): Promise<ScriptedPolicy> {
  const { tokenizer } = await openRenderer(model)
  return play(answers, { encode: text => tokenizer.encode(text) })
}
