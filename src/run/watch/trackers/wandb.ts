import { randomBytes } from 'node:crypto'
import type { CurvePoint } from './curves.ts'
import { keep, readKept } from './kept-id.ts'
import { sendJson } from './post-json.ts'
import type { TrackedRun, TrackerService } from './tracker.ts'

/** What Weights & Biases is asked with. */
export interface WandbOptions {
  /** Of its interface, and of the pages that people look at. */
  readonly url: string
  readonly page: string
  /** The user or team; its own default if none is named. */
  readonly entity: string | undefined
  readonly project: string
  readonly key: string
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The state of a run there, with what later messages need of it. */
interface Bucket {
  readonly historyLineCount: number | null
  readonly project: { readonly name: string; readonly entity: { readonly name: string } }
}

const upsert = `mutation UpsertBucket($name: String, $project: String, $entity: String, $displayName: String, $config: JSONString) {
  upsertBucket(input: { name: $name, modelName: $project, entityName: $entity, displayName: $displayName, config: $config }) {
    bucket { historyLineCount project { name entity { name } } }
  }
}`

/** Tells a run to Weights & Biases as its own client does: the run by GraphQL, the history as lines of a stream. */
export function wandbTracker(options: WandbOptions, run: TrackedRun): TrackerService {
  const { url, page, project, entity = null, key, now } = options
  const headers = { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` }
  const began = now()
  let id = ''
  let lines = 0
  let stream = ''
  let summary: Readonly<Record<string, number>> = {}
  /** The last step: its line is sent when the next one begins, since a step has one line there. */
  let unsent: CurvePoint | undefined
  const send = (body: object): Promise<unknown> =>
    sendJson(stream, { method: 'POST', headers, body })
  const runtime = (): number => (now() - began) / 1000
  const summaryFile = (): object => ({
    'wandb-summary.json': {
      offset: 0,
      content: [JSON.stringify({ ...summary, _runtime: runtime() })],
    },
  })
  const sendLines = async (points: readonly CurvePoint[], more: object): Promise<void> => {
    const content = points.map(({ step, values }) =>
      JSON.stringify({ ...values, _step: step, _timestamp: now() / 1000, _runtime: runtime() }),
    )
    for (const { values, step } of points) summary = { ...summary, ...values, _step: step }
    const history = content.length > 0 && { 'wandb-history.jsonl': { offset: lines, content } }
    await send({ files: { ...history, ...summaryFile() }, ...more })
    lines += content.length
  }
  return {
    name: 'Weights & Biases',
    async begin() {
      id = (await readKept(run.folder, 'wandb')) ?? randomBytes(4).toString('hex')
      const config = configOf(await run.settings())
      const variables = { name: id, project, entity, displayName: run.name, config }
      const answer = await sendJson(`${url}/graphql`, {
        method: 'POST',
        headers,
        body: { query: upsert, variables },
      })
      const bucket = bucketIn(answer)
      await keep(run.folder, 'wandb', id)
      const place = [bucket.project.entity.name, bucket.project.name]
        .map(encodeURIComponent)
        .join('/')
      lines = bucket.historyLineCount ?? 0
      stream = `${url}/files/${place}/${id}/file_stream`
      return { page: `${page}/${place}/runs/${id}` }
    },
    async add(points) {
      const steps = joined(unsent ? [unsent, ...points] : points)
      await sendLines(steps.slice(0, -1), {})
      unsent = steps.at(-1)
    },
    async end(status) {
      const exitcode = status === 'failed' ? 1 : 0
      await sendLines(unsent ? [unsent] : [], { complete: true, exitcode })
      unsent = undefined
    },
  }
}

/** Points of the same step as one. */
function joined(points: readonly CurvePoint[]): readonly CurvePoint[] {
  const steps: CurvePoint[] = []
  for (const point of points) {
    const last = steps.at(-1)
    if (last?.step === point.step)
      steps[steps.length - 1] = { ...last, values: { ...last.values, ...point.values } }
    else steps.push(point)
  }
  return steps
}

function bucketIn(answer: unknown): Bucket {
  const { data, errors } = answer as {
    readonly data?: { readonly upsertBucket?: { readonly bucket?: Bucket } }
    readonly errors?: readonly { readonly message: string }[]
  }
  const bucket = data?.upsertBucket?.bucket
  if (!bucket) throw new Error(errors?.[0]?.message ?? 'it began no run')
  return bucket
}

/** Settings as the client writes them: each with its value within. */
function configOf(settings: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(
    Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, { value }])),
  )
}
