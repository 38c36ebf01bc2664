import { parsePartName, UnknownPartError } from '../../base/core/names/part-name.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { joinEnvironments, splitEnvironments } from './environment-names.ts'
import { offered } from './offered.ts'
import { openNamed } from './open-named.ts'
import { isUserPart } from './user-part.ts'

/** Settings while they are laid over each other, and where each came from. */
export interface Laid {
  readonly merged: Record<string, unknown>
  readonly origins: Record<string, string>
}

/** Settings that say something of the environment become part of its name, under which a run opens it again. */
export async function placeAgent({ merged, origins }: Laid): Promise<void> {
  replaceEnvironment(merged, origins)
  await placeTasks(merged, origins)
  placeSandbox(merged)
}

/** An agent stands in the environment's place; the one that was named last counts. */
function replaceEnvironment(
  merged: Record<string, unknown>,
  origins: Record<string, string>,
): void {
  const { agent, environment } = merged
  if (typeof agent !== 'string') return
  if (environment !== undefined && origins.environment === origins.agent) {
    throw new SettingError('--agent stands in place of --environment: name one of them')
  }
  if (environment === undefined || origins.agent === 'flag') {
    merged.environment = isUserPart(agent) ? agent : harnessNamed(agent)
    origins.environment = origins.agent!
  }
  delete merged.agent
}

const harness = 'harness'

/** The environment that a harness is: `codex:seconds=60`, or `acp:COMMAND`, which is one line with all that it holds. */
function harnessNamed(agent: string): string {
  const [name, ...rest] = agent.split(':')
  const items = rest.join(':').trim()
  const { harnesses } = offered()
  if (!harnesses.includes(name!)) {
    const { message } = new UnknownPartError('agent', name!, ['./file.ts#export', ...harnesses])
    throw new SettingError(`--agent ${agent}: ${message}`)
  }
  if (name === 'acp') return withOption(`${harness}:acp`, 'command', items)
  return items === '' ? `${harness}:${name}` : `${harness}:${name},${items}`
}

/** Task folders, `--tasks harbor:DIR`, are all tasks of the environment that they name; a number of a harness are small repairs. */
async function placeTasks(
  merged: Record<string, unknown>,
  origins: Record<string, string>,
): Promise<void> {
  const { tasks, environment } = merged
  const isHarness = typeof environment === 'string' && isNamed(environment, harness)
  if (typeof tasks === 'number' && isHarness && !hasTasks(environment)) {
    merged.environment = withOption(environment, 'tasks', 'repair')
  }
  if (typeof tasks !== 'string') return
  const [scheme = ''] = tasks.split(':')
  const { taskFolders } = offered()
  if (scheme === tasks || !Object.hasOwn(taskFolders, scheme)) return
  const count = await taskFolders[scheme]!()
  merged.tasks = await openNamed(`--tasks ${tasks}`, () =>
    count(parsePartName(tasks).variant ?? ''),
  )
  if (isHarness) merged.environment = withOption(environment, 'tasks', tasks)
  else if (environment === undefined) {
    merged.environment = tasks
    origins.environment = origins.tasks!
  } else if (!isNamed(String(environment), scheme)) {
    throw new SettingError(
      `--tasks ${tasks}: these tasks are of the environment ${scheme}, not of ${environment}`,
    )
  }
}

const isNamed = (environment: string, name: string): boolean =>
  environment === name || environment.startsWith(`${name}:`)

const hasTasks = (environment: string): boolean => parsePartName(environment).options.has('tasks')

/** A sandbox is an option of the environments that run commands in one. */
function placeSandbox(merged: Record<string, unknown>): void {
  const { sandbox, environment } = merged
  if (typeof sandbox !== 'string' || typeof environment !== 'string') return
  const names = splitEnvironments(environment)
  const own = names.find(isUserPart)
  if (own !== undefined) {
    throw new SettingError(
      `--sandbox ${sandbox}: ${own} opens its workspaces itself, with what its own file says`,
    )
  }
  merged.environment = joinEnvironments(names.map(name => withOption(name, 'sandbox', sandbox)))
  delete merged.sandbox
}

/** A part's name with one more option; a comma in its value belongs to it. */
function withOption(name: string, option: string, value: string): string {
  return `${name}${name.includes(':') ? ',' : ':'}${option}=${value.replaceAll(',', '\\,')}`
}
