import '../src/offers.ts'
import { z } from 'zod'
import { type AgentFunction, agent } from '../src/engine/capture/agent.ts'
import { roll } from '../src/run/run/roll.ts'
import { expectCaptured, withOwnRecord } from './captured.ts'
import { openByteRenderer, script } from './rolling.ts'

const renderer = await openByteRenderer()

/** Rolls an agent's function with a script; gives what it returned and what was captured of it. */
export async function rollScript(
  run: AgentFunction<{ question: string }>,
  answers: readonly string[],
) {
  const task = z.object({ question: z.string() })
  const environment = agent({ name: 'asked', task, run, reward: { any: () => 1 } })
  const policy = withOwnRecord(script(renderer, answers))
  const options = { policy, model: renderer, group: 1 }
  for await (const group of roll(environment, [{ question: 'Is it open?' }], options)) {
    const [member] = group.members
    if (!member) throw new Error(JSON.stringify(group.unscored[0]!.outcome))
    expectCaptured(member.tree, policy.record)
    return { ...member.trajectory, asked: policy.record.length }
  }
  throw new Error('no group')
}
