import { aroundPolicy } from '../../base/core/around.ts'
import type { Policy, Sample, SampleRequest } from '../../base/core/policy.ts'
import {
  type BasisEvidence,
  type Compared,
  enoughTokens,
  type LogprobKind,
  weighBasis,
} from './basis-evidence.ts'
import { compareDraw, mostCandidates, otherTemperature } from './trial.ts'

/** What contradicts the label of a server's numbers. */
export interface Contradiction {
  readonly server: string
  readonly label: LogprobKind
  readonly evidence: BasisEvidence
}

/** Tokens drawn in one look, and those that were sampled for each: looking costs at most one in a hundred. */
const [looked, sampledForEach] = [8, 100]
/** A longer prompt would cost more to score than the look is worth. */
const longestPrompt = 4096
/** Tokens of a server that its verdict is made of. */
const remembered = 2 * enoughTokens

/**
 * Looks now and then whether a server's numbers are still what they are called: a few tokens are drawn behind a
 * prompt of the run and scored under both hypotheses. It may have been started again with other flags.
 */
export function withBasisWatch(
  policy: Policy,
  onContradiction: (found: Contradiction) => void,
): Policy {
  if (!policy.score || !policy.takeLogprobs || policy.capabilities.topLogprobs === 0) return policy
  const seen = new Map<string, Compared[]>()
  let sampled = 0
  let isLooking = false

  async function look(request: SampleRequest, label: LogprobKind): Promise<void> {
    const candidates = Math.min(mostCandidates, policy.capabilities.topLogprobs)
    const how = { temperature: otherTemperature, seed: request.seed, candidates, tokens: looked }
    const call = { signal: AbortSignal.timeout(60_000) }
    const { server = policy.name, compared } = await compareDraw(policy, { request, how }, call)
    const known = [...(seen.get(server) ?? []), ...compared].slice(-remembered)
    seen.set(server, known)
    const evidence = weighBasis(known, 0)
    if (evidence.processed === undefined || evidence.verdict === 'undecided') return
    if (evidence.verdict !== label) onContradiction({ server, label, evidence })
  }

  function note(request: SampleRequest, sample: Sample): void {
    const label = labelOf(request, sample)
    if (label === undefined) return
    sampled += sample.usage.sampled
    if (isLooking || sampled < (looked + 1) * sampledForEach) return
    if (request.prompt.ids.length > longestPrompt) return
    sampled = 0
    isLooking = true
    const over = (): void => {
      isLooking = false
    }
    // A look that fails says nothing.
    look(request, label).then(over, over)
  }

  return aroundPolicy(policy, {
    async draw({ request, ask }) {
      const samples = await ask()
      for (const sample of samples) note(request, sample)
      return samples
    },
    async drawOne(request, call) {
      const sample = await policy.sample(request, call)
      note(request, sample)
      return sample
    },
  })
}

/** What a sample's numbers are called, if that makes a difference. */
function labelOf({ sampling }: SampleRequest, sample: Sample): LogprobKind | undefined {
  if (sample.kind !== 'tokens' || sampling.temperature === 0 || sampling.temperature === 1) return
  return sample.segment.basis === 'raw' ? 'raw' : 'processed'
}
