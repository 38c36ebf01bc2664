import { z } from 'zod'
import type { Environment } from '../../base/core/environment.ts'
import { keepSecret, keepSecretsIn } from '../../base/core/process/secrets.ts'
import { environment } from '../../engine/environments/environment.ts'
import type { EnvironmentFactory } from '../../engine/environments/factory.ts'
import { type ReturnReport, returnReward } from '../../engine/environments/returns.ts'
import { isRecord } from '../../engine/environments/tools/json-schema.ts'
import { Line } from './line.ts'
import { readServerCard, type ServerAddress, type ServerCard } from './server.ts'
import { listedTasks, type OpenEnvTask, openEnvTask, seededTasks, seedSplits } from './task.ts'
import { type Acting, openRemoteWorld } from './world.ts'

/** How an OpenEnv server is used; all but its address is optional. */
export interface OpenEnvOptions {
  /** Its address: `http://localhost:8000`, or that of a Space. */
  readonly url: string
  /** What is sent as bearer. */
  readonly key?: string
  /**
   * `simulation`: worlds are reset, stepped and rewarded. `mcp`: a production server, whose tools
   * are called over its MCP sockets and whose reward comes from elsewhere. @default 'simulation'
   */
  readonly mode?: 'simulation' | 'mcp'
  /** The field of an action that takes what the policy says; without it actions are calls of tools. */
  readonly say?: string
  /** The field of an observation that the policy is shown. @default the only text, or all as JSON */
  readonly observe?: string
  /** The first message to the policy. @default the server's description of itself */
  readonly instruction?: string
  /** Seconds until an answer has to be here. @default 60 */
  readonly seconds?: number
  /** Bytes that an answer may have. @default 16 MiB */
  readonly bytes?: number
  /** Seconds without a move in any world held here until waiting in line is given up. @default 300 */
  readonly patience?: number
  /** What happens when a world refuses an action or breaks: the attempt fails, or the policy sees the error. @default 'fail' */
  readonly errors?: 'fail' | 'observe'
  /** Whether observations are held to the server's schema. @default 'checked' */
  readonly schema?: 'checked' | 'trusted'
  /** Called when attempts have to wait in line. */
  readonly warn?: (text: string) => void
}

/**
 * The worlds of an OpenEnv server: one session each; attempts wait in line if the server is full. A
 * server's mistake fails the attempt that met it, with the reason.
 */
export async function openOpenEnv(options: OpenEnvOptions): Promise<Environment<OpenEnvTask>> {
  const { key, mode = 'simulation', patience = 300, warn } = options
  keepSecret(key)
  keepSecretsIn(options.url)
  const headers: Record<string, string> =
    key === undefined ? {} : { authorization: `Bearer ${key}` }
  const address: ServerAddress = { url: options.url.replace(/(?<!\/)\/+$/, ''), headers }
  const card = await readServerCard(address)
  const acting = actingOf(card, { mode, say: options.say })
  const { seconds = 60, bytes = 16 * 2 ** 20, errors = 'fail', schema = 'checked' } = options
  const url = `${address.url}${mode === 'mcp' ? '/mcp' : '/ws'}`
  const rest = {
    card,
    line: new Line({ url: address.url, patience, warn }),
    session: { url, headers, seconds, bytes },
    acting,
    observe: options.observe,
    instruction: options.instruction ?? card.description,
    errors,
    schema,
  }
  // Simulated worlds with tools answer a turn without a call with a nudge; over MCP it is the final answer.
  const isMissed = acting.kind === 'action' || acting.kind === 'tools'
  const { splits } = card
  return environment<OpenEnvTask, ReturnReport>({
    name: card.name,
    task: openEnvTask,
    calls: acting.kind === 'action' ? 'one' : 'many',
    ...(isMissed && { nudge: { text: 'Call a tool.', misses: 3 } }),
    open: call => openRemoteWorld(call, rest),
    ...(mode === 'simulation' && { reward: { return: returnReward } }),
    makeTasks: made => (splits.size > 0 ? listedTasks(splits, made) : seededTasks(made)),
    splits: splits.size > 0 ? [...splits.keys()] : seedSplits,
  })
}

/** How a policy acts in the worlds of a server, from the schema of its actions. */
function actingOf(
  { action, name }: ServerCard,
  { mode, say }: { readonly mode: string; readonly say: string | undefined },
): Acting {
  if (mode === 'mcp') return { kind: 'mcp' }
  const { metadata: _, ...fields } = isRecord(action.properties) ? action.properties : {}
  const names = Object.keys(fields)
  if (say !== undefined) {
    if (names.includes(say)) return { kind: 'say', field: say }
    throw new Error(`say=${say}: an action of ${name} has the fields ${names.join(', ')}`)
  }
  const isToolWorld = names.length === 0 || (names.includes('tool_name') && names.includes('type'))
  if (isToolWorld) return { kind: 'tools' }
  return { kind: 'action', schema: { ...action, properties: fields } }
}

const options = z.strictObject({
  /** The address of the server. */
  variant: z.url({ protocol: /^https?$/ }),
  mode: z.enum(['simulation', 'mcp']).optional(),
  say: z.string().min(1).optional(),
  observe: z.string().min(1).optional(),
  instruction: z.string().optional(),
  seconds: z.coerce.number().positive().optional(),
  bytes: z.coerce.number().int().min(1000).optional(),
  patience: z.coerce.number().positive().optional(),
  errors: z.enum(['fail', 'observe']).optional(),
  schema: z.enum(['checked', 'trusted']).optional(),
  /** The variable of the process that holds the key. */
  'key-variable': z.string().min(1).optional(),
})

/** OpenEnv servers by name: `openenv:http://localhost:8000,say=message`. */
export function openEnvFactory(warn: (text: string) => void): EnvironmentFactory {
  return {
    about: 'The worlds of an OpenEnv server: games, tool worlds, anything that it serves.',
    options,
    async open(read) {
      const { variant, 'key-variable': variable, ...rest } = read as z.output<typeof options>
      const key = variable === undefined ? undefined : process.env[variable]
      if (variable !== undefined && !key) throw new Error(`the variable ${variable} is not set`)
      const given = Object.entries({ ...rest, key }).filter(([, value]) => value !== undefined)
      const opened = await openOpenEnv({ url: variant, warn, ...Object.fromEntries(given) })
      // Tasks only reach an environment after its own `readTask` has read them.
      return opened as Environment
    },
  }
}
