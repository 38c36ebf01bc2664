import type { Renderer } from '@espalier/text'
import type { Call } from '../../../base/core/call.ts'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import type { Policy } from '../../../base/core/policy.ts'
import type { BasisEvidence, LogprobKind } from '../../../engine/policies/basis-evidence.ts'
import { readAddress } from '../../../engine/policies/policy-uri.ts'
import { findLogprobs } from '../../../engine/policies/trial.ts'

/** What is asked of a policy's servers before a run. */
export interface Settling {
  readonly renderer: Renderer
  readonly uris: readonly string[]
  readonly temperature: number
  /** What `--logprobs` says. */
  readonly logprobs: LogprobKind | undefined
}

/** Short openings that models go on from in different ways. */
const openings = [
  'Hello',
  'Write a short story about a goat and a lighthouse.',
  'What is 17 * 23? Explain each step.',
]

/** The prompts of a trial. */
export function trialPrompts(renderer: Renderer): readonly Int32Array[] {
  return openings.map(content => renderer.render([{ role: 'user', content }], []))
}

/**
 * Finds out for each server whether its log-probabilities are raw or processed, if that makes a difference:
 * what it says of itself counts first, then what is measured. Throws if neither settles it, since rows
 * would call numbers what they may not be.
 */
export async function settleLogprobs(
  policy: Policy,
  settling: Settling,
  call: Call,
): Promise<void> {
  const { temperature, uris } = settling
  if (!policy.takeLogprobs || temperature === 0 || temperature === 1) return
  const members = policy.members ?? [policy]
  await Promise.all(
    members.map((member, at) =>
      settleOne(member, { ...settling, uri: uris[at] ?? member.name }, call),
    ),
  )
}

type SettlingOne = Settling & { readonly uri: string }

async function settleOne(policy: Policy, settling: SettlingOne, call: Call): Promise<void> {
  const { uri, renderer } = settling
  const said = readAddress(uri).parameters.logprobs ?? settling.logprobs
  const told = (await policy.describe?.(call).catch(() => undefined))?.logprobs
  if (told !== undefined) {
    if (said !== undefined && said !== told)
      throw contrary(settling, said, `the server says ${told}`)
    policy.takeLogprobs!(told)
    return
  }
  const evidence = await findLogprobs(policy, trialPrompts(renderer), call).catch(
    (cause: unknown) => {
      call.signal.throwIfAborted()
      return cause instanceof Error ? cause : new Error(String(cause))
    },
  )
  if (said !== undefined) {
    const isContrary = evidence && !(evidence instanceof Error) && isOther(evidence, said)
    if (isContrary) throw contrary(settling, said, evidenceWords(evidence))
    return
  }
  if (!evidence || evidence instanceof Error || evidence.verdict === 'undecided') {
    throw unsettled(settling, evidence)
  }
  policy.takeLogprobs!(evidence.verdict)
}

function isOther({ verdict }: BasisEvidence, said: LogprobKind): boolean {
  return verdict !== 'undecided' && verdict !== said
}

function contrary({ uri }: SettlingOne, said: LogprobKind, words: string): Error {
  return new SettingError(`--policy ${uri}: its log-probabilities are not ${said}: ${words}`)
}

function unsettled(
  { uri, temperature }: SettlingOne,
  evidence: BasisEvidence | Error | undefined,
): Error {
  const reason =
    evidence === undefined
      ? 'it cannot score tokens'
      : evidence instanceof Error
        ? `trying it failed: ${evidence.message}`
        : evidenceWords(evidence)
  return new SettingError(
    `--policy ${uri}: whether its log-probabilities at temperature ${temperature} are raw or processed could not ` +
      `be found out (${reason}). Say it with --logprobs raw or --logprobs processed: vLLM gives what its ` +
      '--logprobs-mode says, raw by default; SGLang gives processed ones unless SGLANG_RETURN_ORIGINAL_LOGPROB is set',
  )
}

/** What was measured, in words. */
export function evidenceWords({ tokens, raw, processed }: BasisEvidence): string {
  const other =
    processed === undefined ? '' : ` and ${processed.toPrecision(2)} from processed ones`
  return `the numbers of ${tokens} tokens are ${raw.toPrecision(2)} on average from raw ones${other}`
}
