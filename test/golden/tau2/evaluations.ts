import { evaluate, type RewardInfo, taskWorld } from '../../../src/worlds/tau2/evaluate.ts'
import type { Tau2Message, Tau2ToolCall } from '../../../src/worlds/tau2/message.ts'
import type { Dict } from '../../../src/worlds/tau2/program/values.ts'
import type { GoldenAction, Tau2Task } from '../../../src/worlds/tau2/task.ts'
import type { Tau2World } from '../../../src/worlds/tau2/world.ts'
import {
  argumentsOf,
  differ,
  firstOf,
  lengthOf,
  type Problem,
  sha256,
  type Tau2Row,
  type Tau2Source,
} from './source.ts'

/** Plays the variants of a task and compares what each is worth, and why. */
export async function checkEvaluation(
  row: Tau2Row,
  name: string,
  source: Tau2Source,
): Promise<Problem> {
  const domain = source.domain(name)
  const task = source.task(name, row.task)
  const start = taskWorld(domain, task)
  const actions = task.criteria?.actions ?? []
  const mutating = actions.flatMap((action, index) =>
    domain.isMutating(action.name) ? [index] : [],
  )
  const golden = taskWorld(domain, task)
  for (const action of actions) golden.respond(toCall(action, ''))
  const first = firstOf(
    differ('mutating', row.mutating, mutating),
    differ(
      'at the start',
      [row.init_db_hash, row.init_user_db_hash],
      [start.hash(), start.userHash()],
    ),
    differ(
      'after the golden actions',
      [row.gold_db_hash, row.gold_user_db_hash],
      [golden.hash(), golden.userHash()],
    ),
  )
  if (first) return `${row.task}: ${first}`
  for (const [variant, { in: given, out, errors }] of Object.entries<Tau2Row>(row.variants)) {
    const problem = await checkVariant({ given, out, errors, task, name, source })
    if (problem) return `${row.task} ${variant}: ${problem}`
  }
  return undefined
}

const toCall = (
  { requestor, name, arguments: given }: Pick<GoldenAction, 'requestor' | 'name' | 'arguments'>,
  id: string,
): Tau2ToolCall => ({
  id,
  name,
  arguments: given,
  requestor,
})

interface Variant {
  readonly given: Tau2Row
  readonly out: Tau2Row
  readonly errors: readonly number[] | undefined
  readonly task: Tau2Task
  readonly name: string
  readonly source: Tau2Source
}

async function checkVariant({ given, out, errors, task, name, source }: Variant): Promise<Problem> {
  const domain = source.domain(name)
  const { messages, failed } = play(taskWorld(domain, task), given, task)
  const asked: { system: string; user: string }[] = []
  try {
    const info = await evaluate({
      domain,
      prompts: source.prompts,
      task,
      messages,
      termination: given.term ?? 'user_stop',
      type: given.et ?? 'all',
      strict: given.strict ?? true,
      judge: async prompt => {
        asked.push(prompt)
        return verdict(task.criteria?.nlAssertions ?? [], given.verdict)
      },
    })
    if (out.raised) return `wanted ${out.raised}, got a reward`
    const prompts = asked.map(({ system, user }) => [
      lengthOf(system),
      lengthOf(user),
      sha256(system),
      sha256(user),
    ])
    return firstOf(
      ...Object.entries(shown(info)).map(([key, value]) => differ(key, out[key], value)),
      differ('judge prompts', out.judge_prompts ?? [], prompts),
      errors === undefined ? undefined : differ('errors', errors, failed),
    )
  } catch (error) {
    return out.raised === (error as { type?: string }).type
      ? undefined
      : `raised ${String(error).slice(0, 300)}, wanted ${out.raised ?? 'a reward'}`
  }
}

function verdict(assertions: readonly string[], kind: string | undefined): string {
  const results = assertions.map((expectedOutcome, index) => ({
    expectedOutcome,
    reasoning: `r${index}`,
    metExpectation: !(kind === 'last_false' && index === assertions.length - 1),
  }))
  return JSON.stringify({ results })
}

/** The conversation of a variant, its answers from a live world. */
function play(
  world: Tau2World,
  given: Tau2Row,
  task: Tau2Task,
): { messages: Tau2Message[]; failed: number[] } {
  const words = (role: 'assistant' | 'user', content: string): Tau2Message => ({
    role,
    content,
    tool_calls: null,
  })
  const messages: Tau2Message[] = [
    words('assistant', 'Hi! How can I help you today?'),
    words('user', 'hello'),
  ]
  const failed: number[] = []
  for (const [index, act] of given.acts.entries()) {
    const call = toCall(actionOf(act, task), `c${index}`)
    const answer = world.respond(call)
    if (answer.error) failed.push(index)
    const content = given.tamper === index ? `${answer.content}~` : answer.content
    messages.push({ role: call.requestor, content: null, tool_calls: [call] })
    messages.push({
      role: 'tool',
      id: call.id,
      content,
      requestor: call.requestor,
      error: answer.error,
    })
  }
  for (const text of given.says ?? []) messages.push(words('assistant', text))
  messages.push(words('user', '###STOP###'))
  return { messages, failed }
}

function actionOf(
  act: Tau2Row,
  task: Tau2Task,
): Pick<GoldenAction, 'requestor' | 'name' | 'arguments'> {
  if (typeof act === 'number') return task.criteria?.actions?.[act] as GoldenAction
  const [requestor, name, given] = act
  const read: Dict =
    typeof given === 'string' ? argumentsOf(given) : argumentsOf(JSON.stringify(given))
  return { requestor, name, arguments: read }
}

const short = (text: string): string => sha256(text).slice(0, 16)

/** A reward as the golden rows keep it. */
function shown(info: RewardInfo): Record<string, unknown> {
  return {
    reward: info.reward,
    reward_basis: info.reward_basis,
    reward_breakdown: info.reward_breakdown,
    info: info.info,
    db_check: info.db_check,
    env_assertions:
      info.env_assertions?.map(({ env_assertion, met, reward }) => [
        env_assertion.func_name,
        met,
        reward,
      ]) ?? null,
    action_checks:
      info.action_checks?.map(check => [
        check.action.action_id,
        check.action_match,
        check.action_reward,
        check.tool_type,
      ]) ?? null,
    communicate_checks:
      info.communicate_checks?.map(({ info: text, met, justification }) => [
        text,
        met,
        short(justification),
      ]) ?? null,
    nl_assertions:
      info.nl_assertions?.map(({ nl_assertion, met, justification }) => [
        short(nl_assertion),
        met,
        justification,
      ]) ?? null,
  }
}
