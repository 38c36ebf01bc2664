import { z } from 'zod'
import { describeCause } from '../../base/core/failure.ts'
import { parseBounded, readBounded } from '../../base/core/process/bounded.ts'
import { type JsonSchema, validatorOf } from '../../engine/environments/tools/json-schema.ts'

/** A server's description of its environment, read before any world is opened. */
export interface ServerCard {
  readonly name: string
  readonly description: string
  readonly action: JsonSchema
  readonly observation: JsonSchema
  readonly resetObservation: JsonSchema
  /** How many tasks each split has; none if the server has no task API. */
  readonly splits: ReadonlyMap<string, number>
}

/** Where a server is and how it is asked. */
export interface ServerAddress {
  /** Without a slash at its end. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

const mostBytes = 8 * 2 ** 20
const seconds = 30
const fields = z.record(z.string(), z.unknown())
const schemas = z.object({
  action: fields,
  observation: fields,
  reset_observation: fields.nullish(),
})
const metadata = z.object({ name: z.string().min(1), description: z.string().nullish() })

/** Asks a server what it serves; throws if something is wrong with it. */
export async function readServerCard(address: ServerAddress): Promise<ServerCard> {
  const told = await ask(address, '/schema')
  const { action, observation, reset_observation: reset } = read(schemas, told, address, '/schema')
  for (const [name, schema] of Object.entries({ action, observation, reset: reset ?? {} })) {
    compile(address, name, schema)
  }
  const about = metadata.safeParse(await askWhereThere(address, '/metadata')).data
  return {
    name: about?.name ?? 'openenv',
    description: about?.description ?? '',
    action,
    observation,
    resetObservation: reset ?? observation,
    splits: await readSplits(address),
  }
}

function compile({ url }: ServerAddress, name: string, schema: JsonSchema): void {
  try {
    validatorOf(schema)
  } catch (cause) {
    throw new Error(`${url}/schema: its ${name} is not a JSON schema: ${describeCause(cause)}`, {
      cause,
    })
  }
}

/** The splits of a server's task API. */
async function readSplits(address: ServerAddress): Promise<ReadonlyMap<string, number>> {
  const names = z.array(z.string()).safeParse(await askWhereThere(address, '/list_environments'))
  const name = names.data?.[0]
  if (name === undefined) return new Map()
  const path = `/${encodeURIComponent(name)}`
  const listed = z
    .array(z.object({ name: z.string() }))
    .max(100)
    .safeParse(await askWhereThere(address, `${path}/splits`))
  const splits = new Map<string, number>()
  for (const { name: split } of listed.data ?? []) {
    const answer = await ask(address, `${path}/num_tasks`, { split })
    const counted = z.object({ num_tasks: z.int().min(0) })
    splits.set(split, read(counted, answer, address, `${path}/num_tasks`).num_tasks)
  }
  return splits
}

/** Statuses with which servers answer requests for optional features they lack. */
const absent = [404, 405, 500, 501]

async function askWhereThere(address: ServerAddress, path: string): Promise<unknown> {
  const { status, body } = await exchange(address, path)
  if (absent.includes(status)) return undefined
  return parse(address, path, { status, body })
}

async function ask(address: ServerAddress, path: string, body?: object): Promise<unknown> {
  return parse(address, path, await exchange(address, path, body))
}

interface Answer {
  readonly status: number
  readonly body: string
}

function parse({ url }: ServerAddress, path: string, { status, body }: Answer): unknown {
  if (status !== 200) throw new Error(`${url}${path} answered ${status}: ${body.slice(0, 200)}`)
  try {
    return parseBounded(body)
  } catch (cause) {
    throw new Error(`${url}${path} answered what is not JSON: ${body.slice(0, 200)}`, { cause })
  }
}

async function exchange(
  { url, headers }: ServerAddress,
  path: string,
  body?: object,
): Promise<Answer> {
  const ask = (): Promise<Response> =>
    fetch(`${url}${path}`, {
      signal: AbortSignal.timeout(seconds * 1000),
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
  // These requests change nothing, so one that met a connection the server was just closing is sent again.
  const response = await ask()
    .catch(ask)
    .catch((cause: Error) => {
      const reason = describeCause(cause.cause ?? cause)
      throw new Error(`no OpenEnv server answers at ${url}: ${reason}`, { cause })
    })
  const bytes = await readBounded(response.body, mostBytes).catch((cause: Error) => {
    const reason = describeCause(cause.cause ?? cause)
    throw new Error(`${url}${path} did not finish its answer: ${reason}`, { cause })
  })
  return { status: response.status, body: bytes.toString('utf8') }
}

function read<Output>(
  schema: z.ZodType<Output>,
  value: unknown,
  { url }: ServerAddress,
  path: string,
): Output {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const problem = z.prettifyError(result.error).replaceAll('\n', ' ').slice(0, 300)
  throw new Error(`${url}${path} is not what OpenEnv answers: ${problem}`)
}
