import type { Message, ToolDefinition } from '@espalier/text'
import type { Environment, World } from '../../base/core/environment.ts'
import type { NonEmpty } from '../../base/core/ids.ts'

/** What a policy is told besides its task: the system message, and what tools say of themselves. */
export interface Prompt {
  /** In place of the environment's system message, or before its opening if it has none. */
  readonly system?: string
  /** Descriptions by the name of their tool; tools that are not named keep their own. */
  readonly tools?: Readonly<Record<string, string>>
}

/** The environment with another prompt in every world that it opens. */
export function withPrompt<Data>(
  environment: Environment<Data>,
  prompt: Prompt,
): Environment<Data> {
  const { name, reward, seats, splits, isolation, makeTasks, taskKey } = environment
  const dispose = environment[Symbol.asyncDispose]
  return {
    name,
    reward,
    readTask: data => environment.readTask(data),
    open: async (task, call) => promptedWorld(await environment.open(task, call), prompt),
    ...(seats && { seats }),
    ...(splits && { splits }),
    ...(isolation && { isolation }),
    ...(makeTasks && { makeTasks: options => makeTasks.call(environment, options) }),
    ...(taskKey && { taskKey: task => taskKey.call(environment, task) }),
    ...(dispose && { [Symbol.asyncDispose]: () => dispose.call(environment) }),
  }
}

function promptedWorld(world: World, prompt: Prompt): World {
  const { spent, report, fork, forkAt } = world
  const refork = async (forked: Promise<World>): Promise<World> =>
    promptedWorld(await forked, prompt)
  return {
    opening: openingWith(world.opening, prompt),
    tools: world.tools.map(tool => toolWith(tool, prompt)),
    ...(spent !== undefined && { spent }),
    step: (action, call) => world.step(action, call),
    ...(report && { report: () => report.call(world) }),
    ...(fork && { fork: call => refork(fork.call(world, call)) }),
    ...(forkAt && { forkAt: (turns, call) => refork(forkAt.call(world, turns, call)) }),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

function openingWith(opening: NonEmpty<Message>, { system }: Prompt): NonEmpty<Message> {
  if (system === undefined) return opening
  const [first, ...others] = opening
  const told: Message = { role: 'system', content: system }
  return first.role === 'system' ? [told, ...others] : [told, first, ...others]
}

function toolWith(tool: ToolDefinition, { tools = {} }: Prompt): ToolDefinition {
  const { name } = tool.function
  if (!Object.hasOwn(tools, name)) return tool
  return { ...tool, function: { ...tool.function, description: tools[name]! } }
}
