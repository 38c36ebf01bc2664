import { SettingError } from '../../base/core/names/setting-error.ts'
import { joinEnvironments, splitEnvironments } from './environment-names.ts'
import { isUserPart } from './user-part.ts'

/** Settings while they are laid over each other, and where each came from. */
export interface Laid {
  readonly merged: Record<string, unknown>
  readonly origins: Record<string, string>
}

/** Settings that say something of the environment become part of its name, under which a run opens it again. */
export function placeAgent({ merged, origins }: Laid): void {
  replaceEnvironment(merged, origins)
  placeSandbox(merged)
}

/** An agent stands in the environment's place; the one that was named last counts. */
function replaceEnvironment(
  merged: Record<string, unknown>,
  origins: Record<string, string>,
): void {
  const { agent, environment } = merged
  if (agent === undefined) return
  if (environment !== undefined && origins.environment === origins.agent) {
    throw new SettingError('--agent stands in place of --environment: name one of them')
  }
  if (environment === undefined || origins.agent === 'flag') {
    merged.environment = agent
    origins.environment = origins.agent!
  }
  delete merged.agent
}

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
export function withOption(name: string, option: string, value: string): string {
  return `${name}${name.includes(':') ? ',' : ':'}${option}=${value.replaceAll(',', '\\,')}`
}
