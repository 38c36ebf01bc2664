import { unlessStopped } from '../../base/core/call.ts'
import { describeCause } from '../../base/core/failure.ts'
import type { NonEmpty } from '../../base/core/ids.ts'
import type { Outcome } from '../../base/core/outcome.ts'
import type { Tree } from '../../base/core/tree.ts'
import type { Attempt, RolloutContext } from '../rollout/attempt.ts'
import { withTime } from '../rollout/chain.ts'
import { seedFor } from '../rollout/walk.ts'
import { AgentAnswer, type AgentEnvironment, isAgent } from './agent.ts'
import { inAttempt } from './attempt-context.ts'
import { openCapture } from './capture.ts'
import type { Capture, CaptureEnding } from './contract.ts'
import { makeSeatHooks } from './hooks.ts'
import { plainJson } from './plain-json.ts'

/** Rolls one attempt of an agent: its own code asks, and what each seat asked becomes its tree. */
export async function rollAgent(
  context: RolloutContext,
  attempt: Attempt,
): Promise<NonEmpty<Tree>> {
  const { environment } = context
  if (!isAgent(environment)) throw new TypeError(`${environment.name} is not an agent`)
  const turn = context.shared.yielding.whenDue()
  if (turn) await turn
  const timed = withTime(attempt, context)
  const { seats } = environment
  const capture = openCapture({ context, attempt: timed.attempt, ...(seats && { seats }) })
  try {
    const ending = await runAgent(environment, { context, attempt: timed.attempt, capture })
    const trees = await capture.end(ending)
    // An agent may go on without an answer, but the run cannot.
    if (capture.unrecorded) throw capture.unrecorded
    return trees
  } finally {
    timed.clear()
  }
}

interface Running {
  readonly context: RolloutContext
  readonly attempt: Attempt
  readonly capture: Capture
}

async function runAgent(
  { agent, seats, endsItself }: AgentEnvironment,
  { context, attempt, capture }: Running,
): Promise<CaptureEnding> {
  const { signal, task } = attempt
  const hooks = makeSeatHooks({ capture, signal, policy: context.policy.name }, seats)
  const call = {
    ...hooks,
    task: task.data,
    id: task.id,
    seed: seedFor(attempt, 'world'),
    signal,
  }
  try {
    signal.throwIfAborted()
    // An agent that ignores its signal is not waited for when its attempt is stopped.
    const work = Promise.resolve().then(() => inAttempt(hooks, () => agent(call)))
    const result: unknown = await (endsItself ? work : unlessStopped(attempt, work))
    const { report, ...said } = result instanceof AgentAnswer ? result : { report: result }
    return {
      ...said,
      ...(report !== undefined && { report: plainJson(report) }),
      // In a game a seat may never be asked.
      ...(!seats && { unasked }),
    }
  } catch (error) {
    // The capture knows what stopped it, and what failed though the error passed through the agent.
    if (signal.aborted || capture.ended || capture.failure) return {}
    return { outcome: capture.refusal ?? ownFailure(describeCause(error)) }
  }
}

/** The outcome of an attempt that was over without an answer: it would be scored, and nothing of it trained. */
const unasked = ownFailure(
  'nothing was sampled in it: the agent returned without an answer of the policy, which it asks by the `model`, `fetch`, `modelProvider` or `speaker` that it is given',
)

/** What an agent itself did wrong. */
function ownFailure(message: string): Outcome {
  return { kind: 'failed', boundary: 'environment', message }
}
