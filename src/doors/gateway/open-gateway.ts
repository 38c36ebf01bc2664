import type { Task } from '../../base/core/environment.ts'
import type { Group } from '../../base/core/group.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { makeLanes } from '../../base/core/lane.ts'
import { keepSecret } from '../../base/core/process/secrets.ts'
import { RequestProblem } from '../../engine/capture/dialects/problem.ts'
import { contextOf, laneLimits, type RollParts } from '../../run/run/roll-groups.ts'
import { Attempts } from './attempts.ts'
import type { AttemptsOptions } from './attempts-options.ts'
import type { Gateway } from './gateway.ts'
import type { Secrets } from './secrets.ts'

/** What a gateway is opened with. */
export interface OpenGatewayOptions
  extends Pick<AttemptsOptions, 'most' | 'idleSeconds' | 'record' | 'disk'> {
  readonly parts: RollParts
  readonly secrets?: Secrets
  /** Tasks that attempts may name without sending their data. */
  readonly tasks?: ReadonlyMap<string, Task>
  readonly onGroup?: (group: Group) => void
  /** The name that the model is listed by. @default the model folder's */
  readonly model?: string
}

/** Opens a gateway over the parts of a run; disposing of it ends every attempt and writes its group. */
export function openGateway(options: OpenGatewayOptions): Gateway & AsyncDisposable {
  const { parts, secrets = {}, onGroup, most, idleSeconds, record, disk } = options
  const { environment, policy, renderer } = parts
  for (const secret of Object.values(secrets)) keepSecret(secret)
  const lanes = makeLanes(laneLimits(parts))
  const { condense: _condense, ...whole } = contextOf(parts, lanes)
  const { environment: _world, ...context } = whole
  const { instruments = [] } = parts
  const attempts = new Attempts({
    context,
    ...(instruments.length > 0 && {
      contextFor: attempt => instruments.reduce((inner, around) => around(inner, attempt), whole),
    }),
    reward: parts.reward ?? environment.reward,
    filters: parts.filters ?? [],
    estimate: parts.estimate,
    weighting: parts.weighting ?? 'uniform',
    group: parts.group ?? 8,
    seed: parts.seed ?? 0,
    signal: parts.signal ?? new AbortController().signal,
    ...(parts.writer && { writer: parts.writer }),
    ...(parts.listen && { listen: parts.listen }),
    ...(parts.finished && { finished: parts.finished }),
    ...(onGroup && { onGroup }),
    ...(most !== undefined && { most }),
    ...(idleSeconds !== undefined && { idleSeconds }),
    ...(record && { record }),
    ...(disk && { disk }),
  })
  const { ids } = policy.capabilities
  return {
    attempts,
    secrets,
    readTask: (id, data) => readTask(id, data, options),
    model: options.model ?? renderer.name,
    capture: ids ? 'tokens' : 'text',
    decode: id => renderer.decode(Int32Array.of(id)),
    [Symbol.asyncDispose]: () => attempts[Symbol.asyncDispose](),
  }
}

function readTask(
  id: TaskId,
  data: unknown,
  { parts, tasks }: Pick<OpenGatewayOptions, 'parts' | 'tasks'>,
): Task {
  const known = tasks?.get(id)
  if (known && data === undefined) return known
  try {
    return { id, data: parts.environment.readTask(data ?? { id }) }
  } catch (cause) {
    throw new RequestProblem('invalid', `task "${id}": ${(cause as Error).message}`)
  }
}
