import { openServing, type Serving, type ServingOptions, type Turn } from '../servers/serving.ts'

/** What a solver needs to know of a tau-bench task. */
export interface KnownTask {
  readonly instruction: string
  readonly actions: readonly { readonly name: string; readonly kwargs: object }[]
  readonly outputs: readonly string[]
}

/** How the served model behaves. */
export interface TauServerOptions extends ServingOptions {
  readonly tasks: readonly KnownTask[]
  /** Whether the given attempt at a task, both counted from 0, is to go wrong. @default none */
  readonly goesWrong?: (task: number, attempt: number) => boolean
}

interface Said {
  readonly role: string
  readonly content: string | null
}

/**
 * Opens a server whose model plays both sides of tau-bench: users who say their whole instruction and
 * then stop, and agents who do what the task's own actions are, in calls or in text.
 */
export function openTauServer(options: TauServerOptions): Promise<Serving> {
  const attempts = new Map<string, number>()
  const wrong = new Set<string>()
  const begin = (seed: number, task: number): void => {
    const attempt = attempts.get(String(task)) ?? 0
    attempts.set(String(task), attempt + 1)
    if (options.goesWrong?.(task, attempt)) wrong.add(`${task}/${seed}`)
  }
  const complete = (turn: Turn): void => {
    const messages = turn.body.messages as readonly Said[]
    const system = messages[0]!.content ?? ''
    const isAgent = turn.body.tools?.length > 0 || system.includes('#Available tools')
    const message = isAgent
      ? act(turn, { ...options, begin, isWrong: task => wrong.has(`${task}/${turn.body.seed}`) })
      : { content: speak(messages) }
    turn.json({
      model: 'served',
      choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 100, completion_tokens: 10 },
    })
  }
  return openServing(options, {
    generations: { '/v1/chat/completions': complete },
    others: { '/v1/models': ({ json }) => json({ data: [{ id: 'served' }] }) },
    tooLong: { error: { message: 'too long' } },
  })
}

/** The words of a user, or of the supervisor of one. */
function speak(messages: readonly Said[]): string {
  const system = messages[0]!.content ?? ''
  if (messages.length === 1) return 'true'
  const isThoughtful = system.includes('Thought:')
  const instruction = /\n\nInstruction: ([\s\S]*?)\n\n?(?:Rules:|Say one|Thought:)/.exec(
    system,
  )?.[1]
  const words = messages.length > 2 ? '###STOP###' : (instruction ?? system)
  return isThoughtful ? `Thought:\nhm\n\nUser Response:\n${words}` : words
}

interface Acting extends TauServerOptions {
  begin(seed: number, task: number): void
  isWrong(task: number): boolean
}

function act({ body }: Turn, { tasks, begin, isWrong }: Acting): object {
  const messages = body.messages as readonly Said[]
  const first = messages.find(({ role }) => role === 'user')?.content ?? ''
  const number = tasks.findIndex(({ instruction }) => first.includes(instruction))
  const { actions, outputs } = tasks[number] ?? { actions: [], outputs: [] }
  const done = messages.filter(({ role }) => role === 'assistant').length
  if (done === 0) begin(body.seed, number)
  const action = isWrong(number) ? undefined : actions[done]
  if (!action) return { content: `Done: ${outputs.join(' and ')}.` }
  const called = { name: action.name, arguments: action.kwargs }
  if (!body.tools?.length) return { content: `Thought: so\nAction: ${JSON.stringify(called)}` }
  const json = JSON.stringify(action.kwargs)
  const call = { id: `call_${done}`, type: 'function', function: { ...called, arguments: json } }
  return { content: null, tool_calls: [call] }
}
