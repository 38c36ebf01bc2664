import { once } from 'node:events'
import type { Environment, Task } from '../../../base/core/environment.ts'
import { commandLine } from '../../../base/core/names/program-name.ts'
import { Host } from '../../../doors/hosting/host.ts'
import { serveHost } from '../../../doors/hosting/server.ts'
import { listOfMadeTasks, listOfTasks, type TaskList } from '../../../doors/hosting/task-list.ts'
import { openRewards } from '../../../run/run/open-rewards.ts'
import { openEnvironmentNamed } from '../../../run/settings/open-environment.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import type { SettingsInput } from '../../../run/settings/settings.ts'
import { readTasks } from '../../../run/tasks/tasks.ts'
import { type Command, type Invocation, MisuseError, unknownVerb } from '../../command.ts'
import { counted, doorFlags, keyOption, readDoor, tryPort } from '../../listening.ts'

const madeTasks = 1000

/** Serves an environment to other programs. */
export const environmentCommand: Command = {
  name: 'environment',
  usage: 'serve ./file.ts#export | NAME',
  about:
    'Any environment, at one address, for trainers and agents in other languages: OpenEnv’s clients\n' +
    '(its sockets, tools, MCP sessions and task API) and MCP clients over HTTP. Every session plays a\n' +
    'world of its own; the reward comes with its last step. Besides the world’s tools there is one that\n' +
    'says words: a reply, or the answer that ends the task.',
  examples: [
    'espalier environment serve ./shop.ts#shop --tasks tasks.jsonl --port 8000',
    'ESPALIER_TOKEN=… espalier environment serve desk --host 0.0.0.0',
  ],
  settings: ['tasks', 'seed', 'reward', 'judge'],
  defaults: { tasks: madeTasks, seed: 0 },
  own: {
    port: { help: 'The port; 0 takes any free one (default: 8000)', argument: 'N' },
    sessions: { help: 'Sessions at one time (default: 64)', argument: 'N' },
    ...doorFlags,
  },
  positionalCount: [2, 2],
  run: runEnvironment,
}

async function runEnvironment(invocation: Invocation): Promise<number> {
  const { positionals: words, flags, own, json, terminal, signal } = invocation
  const [verb, name = ''] = words
  if (verb !== 'serve') throw unknownVerb('environment', verb, ['serve'])
  const { port = 8000 } = counted('port', own.port)
  const { sessions } = counted('sessions', own.sessions)
  if (sessions === 0) throw new MisuseError('--sessions takes a number from 1 on')
  const door = readDoor(invocation)
  await openNamed(`--port ${port}`, () => tryPort(port, door.host))
  const environment = await openEnvironmentNamed(name)
  if (environment.drivesItself) {
    throw new MisuseError(`${name} is an agent, which asks a policy itself; serve an environment`)
  }
  const reward = await openRewards(flags.reward, flags.judge)
  const tasks = await tasksFor(environment, flags)
  const host = new Host({
    environment,
    tasks,
    ...(reward && { reward }),
    ...(sessions && { sessions }),
  })
  await using server = await openNamed(`--host ${door.host}`, () =>
    serveHost(host, { port, ...door }),
  )
  const { url } = server
  if (json)
    terminal.print(JSON.stringify({ url, mcp: `${url}/mcp`, environment: environment.name }))
  else terminal.print(`serving ${environment.name} at ${url} for OpenEnv, at ${url}/mcp for MCP`)
  terminal.tell(`next  ${commandLine('check', `openenv:${url}${keyOption(own)}`)}`)
  if (!signal.aborted) await once(signal, 'abort')
  return 0
}

/** Tasks of a file, or those that the environment makes; none if there are neither. */
async function tasksFor(
  environment: Environment,
  { tasks: source = madeTasks, seed = 0 }: SettingsInput,
): Promise<TaskList> {
  if (typeof source === 'number') {
    if (environment.makeTasks) return listOfMadeTasks(environment, { count: source, seed })
    return listOfTasks([])
  }
  const read: Task[] = []
  for await (const task of readTasks(environment, source, { seed })) read.push(task)
  return listOfTasks(read)
}
