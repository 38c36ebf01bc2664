import { z } from 'zod'
import { RefusedRequest } from '../door/refused-request.ts'

const sampling = z
  .strictObject({
    temperature: z.number().min(0).optional(),
    topP: z.number().min(0).max(1).optional(),
    topK: z.int().min(0).optional(),
    minP: z.number().min(0).max(1).optional(),
  })
  .describe('Sampling that differs from the settings of the service')

/** What was sent, as a schema has it; what is wrong with it is told in words. */
export function parse<Schema extends z.ZodType>(schema: Schema, sent: unknown): z.output<Schema> {
  const result = schema.safeParse(sent)
  if (result.success) return result.data
  const problems = result.error.issues.map(({ path, message }) =>
    path.length > 0 ? `${path.join('.')}: ${message}` : message,
  )
  throw new RefusedRequest(400, problems.join('; '))
}

/** The name that every request of a trainer has, if others use the service too. */
const trainer = z
  .string()
  .regex(/^[\w.-]{1,100}$/)
  .optional()
  .describe('Whose it is, where several trainers share the service')

/** What a client asks to be rolled. */
export const submission = z.strictObject({
  id: z
    .string()
    .regex(/^[\w.-]{1,100}$/)
    .describe('A name the client chooses; the same submission sent again is not rolled again'),
  tasks: z
    .array(z.union([z.string(), z.int(), z.record(z.string(), z.unknown())]))
    .min(1)
    .describe("Ids of the service's tasks, or the data of tasks: prompt or messages, answer, …"),
  policy: z
    .string()
    .optional()
    .describe('The endpoint to sample from, such as sglang:http://host:30000'),
  version: z.int().min(0).optional().describe('The version of the weights behind the policy'),
  trainer,
  group: z.int().min(1).max(1024).optional().describe('Attempts per task'),
  step: z.int().min(0).optional().describe('The training step it is for'),
  seed: z.int().min(0).optional().describe('Where every random draw comes from'),
  sampling: sampling.optional(),
  format: z
    .string()
    .optional()
    .describe('The format of the rows of finished groups: jsonl, trl, verl, slime, …'),
})

/** A submission as it was checked. */
export type Submission = z.output<typeof submission>

/** How far a submission is. */
const submissionStatus = z.strictObject({
  id: z.string(),
  state: z.enum(['running', 'finished', 'cancelled', 'failed']),
  groups: z.int(),
  finished: z.int().describe('Groups that are complete'),
  taken: z.int().describe('Groups that the client has acknowledged'),
  reason: z.string().optional().describe('Why it failed'),
})

/** The status of a submission in the API. */
export type SubmissionStatus = z.output<typeof submissionStatus>

/** A finished group as clients get it. */
const finishedGroup = z.strictObject({
  cursor: z.int().describe('Its place in the submission; send the last one as after'),
  group: z.string(),
  task: z.string(),
  index: z.int().describe('The place of its task in the submission'),
  seat: z.string().optional().describe('Whose group it is, where attempts have several seats'),
  step: z.int().optional(),
  rewards: z.array(z.number()).describe('Of the members that were scored'),
  failed: z.int().describe('Attempts that never got a reward'),
  failures: z
    .array(z.strictObject({ where: z.string(), message: z.string(), count: z.int() }))
    .describe('Why they did not: the most frequent reasons, messages without numbers'),
  dropped: z.int().describe('Members that a filter dropped'),
  rows: z.array(z.record(z.string(), z.unknown())).describe('In the format that was asked for'),
})

/** A finished group as clients get it. */
export type FinishedGroup = z.output<typeof finishedGroup>

/** The answer to taking groups. */
const takenGroups = z.strictObject({
  groups: z.array(finishedGroup),
  cursor: z.int().describe('What to send as after next time'),
  state: submissionStatus.shape.state,
})

/** The cursor up to which a client has received groups. */
export const acknowledgement = z.strictObject({
  cursor: z.int().min(0).describe('The last group the client has'),
})

/** New weights. */
export const weights = z.strictObject({
  version: z.int().min(0),
  policy: z.string().optional().describe('Where they are served from now on'),
  interrupt: z
    .boolean()
    .optional()
    .describe('Whether samples under way are cut and go on under the new weights'),
  trainer,
})

/** Weights as they are announced. */
export type Weights = z.output<typeof weights>

/** Seconds that a pause lasts unless it is asked for again. */
const pauseSeconds = { usual: 600, most: 3600 }

/** A pause; asking again renews it. */
export const pause = z.strictObject({
  seconds: z
    .int()
    .min(1)
    .max(pauseSeconds.most)
    .default(pauseSeconds.usual)
    .describe('After so long sampling goes on by itself, unless the pause is asked for again'),
  trainer,
})

/** The end of a pause. */
export const resume = z.strictObject({ trainer })

/** A world to open. */
export const worldRequest = z.strictObject({
  task: z
    .union([z.string(), z.int(), z.record(z.string(), z.unknown())])
    .describe("The id of one of the service's tasks, or the data of a task"),
  seed: z.int().min(0).optional(),
})

/** A tool to call. */
export const worldCall = z.strictObject({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()).default({}),
})

/** The end of a world. */
export const worldClose = z.strictObject({
  answer: z.string().optional().describe('The last words of the policy'),
})

const world = z.strictObject({
  id: z.string(),
  messages: z.array(z.record(z.string(), z.unknown())).describe('How it begins'),
  tools: z.array(z.record(z.string(), z.unknown())),
})

const problem = z.strictObject({ error: z.string() })

const state = z.strictObject({
  paused: z.boolean(),
  seconds: z.int().nullable().describe('How long the pause lasts unless it is asked for again'),
  version: z.int().nullable(),
})

interface Operation {
  readonly path: string
  readonly method: 'get' | 'post' | 'delete'
  readonly summary: string
  readonly body?: z.ZodType
  readonly answer: z.ZodType | string
  readonly code?: number
  readonly query?: Readonly<Record<string, string>>
  /** Whether a client may name the request, to send it again. */
  readonly isNamed?: true
}

const operations: readonly Operation[] = [
  {
    path: '/v1/rollouts',
    method: 'post',
    summary: 'Submit tasks to be rolled; 429 where the queue is full',
    body: submission,
    answer: submissionStatus,
    code: 202,
  },
  { path: '/v1/rollouts/{id}', method: 'get', summary: 'How far it is', answer: submissionStatus },
  {
    path: '/v1/rollouts/{id}',
    method: 'delete',
    summary: 'Cancel it; finished groups stay',
    answer: submissionStatus,
  },
  {
    path: '/v1/rollouts/{id}/groups',
    method: 'get',
    summary:
      'Take finished groups, waiting for the next where there is none; their rows alone with Accept: application/vnd.apache.arrow.stream',
    answer: takenGroups,
    query: {
      after: 'Acknowledges every group up to this cursor, and gives those after it',
      wait: 'Seconds to wait for a group, at most 60',
      max: 'The most groups to give',
    },
  },
  {
    path: '/v1/rollouts/{id}/acknowledge',
    method: 'post',
    summary: 'Let go of groups that were received as events',
    body: acknowledgement,
    answer: submissionStatus,
  },
  {
    path: '/v1/rollouts/{id}/events',
    method: 'get',
    summary: 'Finished groups as server-sent events; Last-Event-ID goes on after a cursor',
    answer: 'text/event-stream',
  },
  {
    path: '/v1/worlds',
    method: 'post',
    summary: 'Open a world, for trainers that roll by themselves',
    isNamed: true,
    body: worldRequest,
    answer: world,
    code: 201,
  },
  {
    path: '/v1/worlds/{id}/calls',
    method: 'post',
    summary: 'Call one of its tools',
    isNamed: true,
    body: worldCall,
    answer: z.strictObject({ content: z.string(), isOver: z.boolean() }),
  },
  {
    path: '/v1/worlds/{id}/close',
    method: 'post',
    summary: 'Close it, and learn what it was worth',
    isNamed: true,
    body: worldClose,
    answer: z.strictObject({ reward: z.number(), rewards: z.record(z.string(), z.number()) }),
  },
  {
    path: '/v1/weights',
    method: 'post',
    summary: 'Announce new weights',
    body: weights,
    answer: state,
  },
  {
    path: '/v1/pause',
    method: 'post',
    summary: 'Cut samples under way and start none until resumed; what was sampled is kept',
    body: pause,
    answer: state,
  },
  { path: '/v1/resume', method: 'post', summary: 'Go on', body: resume, answer: state },
  {
    path: '/health',
    method: 'get',
    summary: 'Whether it is up',
    answer: z.strictObject({ status: z.literal('ok') }),
  },
  { path: '/metrics', method: 'get', summary: 'Counters for Prometheus', answer: 'text/plain' },
]

/** The OpenAPI document of the service, made from the schemas that requests are checked by. */
export function openApiDocument(version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const operation of operations) {
    paths[operation.path] ??= {}
    paths[operation.path]![operation.method] = describeOperation(operation)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Espalier rollouts', version },
    security: [{ bearer: [] }],
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
    paths,
  }
}

const keyHeader = {
  name: 'idempotency-key',
  in: 'header',
  description:
    'A name the client chooses; a request sent again under it is not run again and gets the same answer',
  schema: { type: 'string', maxLength: 100 },
}

function describeOperation(operation: Operation) {
  const { path, summary, body, answer, code = 200, query = {}, isNamed = false } = operation
  const inPath = path.includes('{id}')
    ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }]
    : []
  const inQuery = Object.entries(query).map(([name, description]) => ({
    name,
    in: 'query',
    description,
    schema: { type: 'number' },
  }))
  const content =
    typeof answer === 'string'
      ? { [answer]: { schema: { type: 'string' } } }
      : { 'application/json': { schema: schemaOf(answer, 'output') } }
  return {
    summary,
    parameters: [...inPath, ...inQuery, ...(isNamed ? [keyHeader] : [])],
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schemaOf(body, 'input') } },
      },
    }),
    responses: {
      [code]: { description: summary, content },
      default: {
        description: 'What was wrong, in words',
        content: { 'application/json': { schema: schemaOf(problem, 'output') } },
      },
    },
  }
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io })
  return rest
}
