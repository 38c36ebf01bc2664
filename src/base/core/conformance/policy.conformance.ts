import { describe, expect, it } from 'vitest'
import { across, Failure } from '../failure.ts'
import {
  type Policy,
  PromptTooLong,
  plainSampling,
  type Sample,
  type SampleRequest,
  type Sampling,
  type TokenSample,
} from '../policy.ts'

/** Ways in which the server behind a policy can fail. */
export type PolicyFault =
  | 'slow'
  | 'reset'
  | 'refused'
  | 'truncated'
  | 'lengths'
  | 'nan'
  | 'null'
  | 'too-long'
  | 'busy'
  | 'unavailable'
  | 'html'
  | 'hang'

/** How the server behind the policy behaves. */
export interface PolicyScene {
  /** What it answers to every sample; `text` if it speaks in text. */
  readonly ids: readonly number[]
  readonly logprobs: readonly number[]
  readonly text: string
  readonly fault?: PolicyFault
  /** Milliseconds per token. */
  readonly pace?: number
  /** The answer stops after so many tokens until it is aborted; `onReached` is called then. */
  readonly hold?: { readonly after: number; readonly onReached: () => void }
  /** The policy's own deadline. */
  readonly deadlineSeconds?: number
}

/** What the server saw of one sample. */
export interface StatedRequest {
  readonly prompt?: readonly number[]
  readonly maxTokens: number
  readonly seed?: number
  readonly sampling: Partial<Sampling>
}

/** A policy, ready for the suite. */
export interface StagedPolicy extends AsyncDisposable {
  readonly policy: Policy
  /** The requests that the server got so far; absent if there is no server. */
  readonly stated?: () => readonly StatedRequest[]
}

/** A way to sample, to be put through the suite. */
export interface PolicySubject {
  readonly name: string
  readonly faults: readonly PolicyFault[]
  open(scene: PolicyScene): Promise<StagedPolicy>
  /** Whether connections are read in a thread whose turns cannot be counted. @default false */
  readonly isElsewhere?: boolean
}

const scene: PolicyScene = {
  ids: [1, 151_643, 12, 7, 0, 99_999, 3, 2],
  // Not all of these are 32-bit floats, as a server's decimal numbers are not.
  logprobs: [-0.1, -2.5, -0.0001, -11.25, 0, -1e-7, -3.3, -0.75],
  text: 'four pears',
}

/** A request for the suite; parts can be replaced. */
export function sampleRequest(parts: Partial<SampleRequest> = {}): SampleRequest {
  return {
    prompt: {
      ids: Int32Array.of(5, 6, 70_000, 8),
      messages: [{ role: 'user', content: 'How many pears?' }],
      tools: [],
    },
    maxTokens: 64,
    sampling: plainSampling,
    stopIds: [2],
    stopStrings: [],
    seed: 11,
    key: { task: 'pears', member: 0, branch: '', turn: 0 },
    session: 'pears/0',
    ...parts,
  }
}

// So long that only a test that never ends runs into it, however busy the machine is.
const patience = 40_000
const call = (): { signal: AbortSignal } => ({ signal: AbortSignal.timeout(patience) })

/** Waits until what was written to a connection within this process has been read from it. */
async function delivered({ isElsewhere = false }: PolicySubject): Promise<void> {
  if (isElsewhere) await new Promise(resolve => setTimeout(resolve, 200))
  for (let turn = 0; turn < 50; turn++) await new Promise(resolve => setImmediate(resolve))
}

/** Expects tokens, which a policy that gives ids must give. */
export function expectTokens(sample: Sample): TokenSample {
  if (sample.kind !== 'tokens') throw new Error(`expected tokens, got ${sample.kind}`)
  return sample
}

/** The suite that every policy passes. */
export function describePolicy(subject: PolicySubject): void {
  describe(`${subject.name} is a policy`, () => {
    describeSamples(subject)
    describeRequests(subject)
    describeEnds(subject)
    describeMore(subject)
    describeFaults(subject)
  })
}

function describeSamples(subject: PolicySubject): void {
  it('[T1] gives what was sampled, with a log-probability for each id or none at all', async () => {
    await using staged = await subject.open(scene)
    const { policy } = staged
    const sample = await policy.sample(sampleRequest(), call())
    expect(sample.finish).toEqual({ kind: 'stop' })
    expect(sample.kind).toBe(policy.capabilities.ids ? 'tokens' : 'text')
    if (sample.kind === 'text') {
      expect(sample.message).toMatchObject({ role: 'assistant', content: scene.text })
      return
    }
    const { ids, logprobs, version } = sample.segment
    expect([...ids]).toEqual(scene.ids)
    expect(logprobs === null).toBe(!policy.capabilities.logprobs)
    if (logprobs) expect([...logprobs]).toEqual(scene.logprobs.map(Math.fround))
    expect(version.from).toBeLessThanOrEqual(version.to)
  })

  it('says what the sample cost', async () => {
    await using staged = await subject.open(scene)
    const { usage, ...sample } = await staged.policy.sample(sampleRequest(), call())
    expect(usage.seconds).toBeGreaterThanOrEqual(0)
    expect(usage.prompt).toBeGreaterThanOrEqual(0)
    if (sample.kind === 'tokens') expect(usage.sampled).toBe(sample.segment.ids.length)
  })

  it('keeps samples apart that run at one time', async () => {
    await using staged = await subject.open(scene)
    const requests = Array.from({ length: 40 }, (_, member) =>
      sampleRequest({
        key: { task: 'pears', member, branch: '', turn: 0 },
        session: `pears/${member}`,
      }),
    )
    const samples = await Promise.all(
      requests.map(request => staged.policy.sample(request, call())),
    )
    for (const sample of samples) {
      if (sample.kind === 'tokens') expect([...sample.segment.ids]).toEqual(scene.ids)
      else expect(sample.message.content).toBe(scene.text)
    }
  })
}

function describeRequests(subject: PolicySubject): void {
  it('[T3] sends the prompt exactly', async () => {
    await using staged = await subject.open(scene)
    if (!staged.stated) return
    const long = Int32Array.from({ length: 3000 }, (_, index) => (index * 7919) % 152_000)
    for (const ids of [Int32Array.of(0), long.subarray(0, 700), long]) {
      const prompt = { ...sampleRequest().prompt, ids }
      await staged.policy.sample(sampleRequest({ prompt }), call())
      const last = staged.stated().at(-1)!
      if (last.prompt) expect(Int32Array.from(last.prompt)).toEqual(ids)
    }
  })

  it('states every sampling parameter and the seed', async () => {
    await using staged = await subject.open(scene)
    if (!staged.stated) return
    for (const sampling of [plainSampling, { temperature: 0.7, topP: 0.9, topK: 20, minP: 0.05 }]) {
      await staged.policy.sample(
        sampleRequest({ sampling, seed: 1_234_567, maxTokens: 31 }),
        call(),
      )
      const { seed, maxTokens, sampling: seen } = staged.stated().at(-1)!
      expect(seen).toEqual(sampling)
      expect(maxTokens).toBe(31)
      if (staged.policy.capabilities.seed) expect(seed).toBe(1_234_567)
    }
  })
}

function describeEnds(subject: PolicySubject): void {
  it('[O2] says when the token limit ended a sample', async () => {
    await using staged = await subject.open(scene)
    const sample = await staged.policy.sample(sampleRequest({ maxTokens: 3 }), call())
    expect(sample.finish).toEqual({ kind: 'length' })
    if (sample.kind === 'tokens') expect([...sample.segment.ids]).toEqual(scene.ids.slice(0, 3))
  })

  it('does not begin when its signal has aborted', async () => {
    await using staged = await subject.open(scene)
    const signal = AbortSignal.abort(new Error('too late'))
    await expect(staged.policy.sample(sampleRequest(), { signal })).rejects.toThrow('too late')
    expect(staged.stated?.() ?? []).toEqual([])
  })

  it('keeps what was sampled when it is aborted, if it says so', async () => {
    const ids = Array.from({ length: 200 }, (_, index) => index + 100)
    const controller = new AbortController()
    const reason = new Error('enough')
    const onReached = (): void => void delivered(subject).then(() => controller.abort(reason))
    const hold = { after: 30, onReached }
    await using staged = await subject.open({ ...scene, ids, logprobs: ids.map(() => -1), hold })
    const { abort, ids: hasIds } = staged.policy.capabilities
    if (!staged.stated) return
    const request = sampleRequest({ maxTokens: 1000 })
    const work = staged.policy.sample(request, { signal: controller.signal })
    if (!abort || !hasIds) {
      await expect(work).rejects.toBe(reason)
      return
    }
    const { finish, segment } = expectTokens(await work)
    expect(finish).toEqual({ kind: 'abort' })
    expect([...segment.ids]).toEqual(ids.slice(0, 30))
    expect(segment.logprobs?.length).toBe(30)
  })

  it('stops when a guard says so, if it streams', async () => {
    const ids = Array.from({ length: 200 }, (_, index) => index + 100)
    await using staged = await subject.open({ ...scene, ids, logprobs: ids.map(() => -1), pace: 2 })
    if (!staged.policy.capabilities.stream) return
    const lengths: number[] = []
    const sample = await staged.policy.sample(
      sampleRequest({
        maxTokens: 1000,
        watch: soFar => {
          lengths.push(soFar.ids.length)
          return soFar.ids.length >= 5 ? 'loop' : undefined
        },
      }),
      call(),
    )
    const { finish, segment } = expectTokens(sample)
    expect(finish).toEqual({ kind: 'guard', guard: 'loop' })
    expect(lengths).toEqual([...new Set(lengths)].sort((a, b) => a - b))
    expect(segment.ids.length).toBeGreaterThanOrEqual(5)
    expect(segment.ids.length).toBeLessThan(200)
    expect([...segment.ids]).toEqual(ids.slice(0, segment.ids.length))
  })

  it('gives the whole sample to a guard that has nothing to say', async () => {
    await using staged = await subject.open(scene)
    if (!staged.policy.capabilities.stream) return
    const sample = await staged.policy.sample(sampleRequest({ watch: () => undefined }), call())
    const { finish, segment } = expectTokens(sample)
    expect(finish).toEqual({ kind: 'stop' })
    expect([...segment.ids]).toEqual(scene.ids)
    expect(segment.logprobs && [...segment.logprobs]).toEqual(scene.logprobs.map(Math.fround))
  })
}

function describeMore(subject: PolicySubject): void {
  it('scores given tokens, if it says so', async () => {
    await using staged = await subject.open(scene)
    const { policy } = staged
    expect(policy.score !== undefined).toBe(policy.capabilities.score)
    if (!policy.score) return
    const ids = Int32Array.of(5, 6, 7, 8)
    const { logprobs } = await policy.score(ids, 2, { temperature: 1 }, call())
    expect(logprobs.length).toBe(2)
    for (const logprob of logprobs) expect(logprob).toBeLessThanOrEqual(0)
    await expect(policy.score(ids, 0, { temperature: 1 }, call())).rejects.toThrow('place 1 to 4')
  })

  it('draws several samples of one prompt, if it says so', async () => {
    await using staged = await subject.open(scene)
    const { policy } = staged
    expect(policy.sampleSeveral !== undefined).toBe(policy.capabilities.several)
    for (const seeds of [[3, 4, 5], [9, 2], [7]]) {
      const samples = await policy.sampleSeveral?.(sampleRequest(), seeds, call())
      if (!samples) return
      expect(samples.map(sample => [...expectTokens(sample).segment.ids])).toEqual(
        seeds.map(() => scene.ids),
      )
    }
  })

  it('reports candidates for each token, if it says so', async () => {
    await using staged = await subject.open(scene)
    if (staged.policy.capabilities.topLogprobs === 0) return
    for (const watch of [undefined, () => undefined]) {
      const request = sampleRequest({ topLogprobs: 3, ...(watch ? { watch } : {}) })
      const { top, ids } = expectTokens(await staged.policy.sample(request, call())).segment
      expect(top?.width).toBe(3)
      expect(top?.ids.length).toBe(ids.length * 3)
      expect(top?.logprobs.length).toBe(ids.length * 3)
    }
  })
}

/** What a message must say, by the fault behind it. */
const words: Readonly<Record<Exclude<PolicyFault, 'slow'>, RegExp>> = {
  reset: /failed: /,
  refused: /failed: /,
  truncated: /not JSON/,
  lengths: /\d+ .*(?:but|after).* \d+/,
  nan: /NaN/,
  null: /null/,
  'too-long': /answered 400: .*context/,
  busy: /answered 429: .*too many/,
  unavailable: /answered 503: .*loading/,
  html: /answered 502: <html>/,
  hang: /did not answer within 0.2 s/,
}

function describeFaults(subject: PolicySubject): void {
  for (const fault of subject.faults) {
    if (fault === 'slow') {
      it('waits for what is slow', async () => {
        await using staged = await subject.open({ ...scene, fault })
        const sample = await staged.policy.sample(sampleRequest(), call())
        expect(sample.finish).toEqual({ kind: 'stop' })
      })
      continue
    }
    it(`[O1] fails at the policy with clear words: ${fault}`, async () => {
      const hang = fault === 'hang' ? { deadlineSeconds: 0.2 } : {}
      await using staged = await subject.open({ ...scene, fault, ...hang })
      const { policy } = staged
      const watches = policy.capabilities.stream ? [undefined, () => undefined] : [undefined]
      for (const watch of watches) {
        const request = sampleRequest(watch ? { watch } : {})
        const failure = await failureOf(policy, request)
        expect(failure.boundary).toBe('policy')
        expect(failure.message).toMatch(words[fault])
        expect(failure.message).toMatch(/http:\/\/127\.0\.0\.1:\d+\/\w/)
        expect(failure.message.length).toBeLessThan(1000)
        expect(failure.cause instanceof PromptTooLong).toBe(fault === 'too-long')
      }
    })
  }

  it('gives up what hangs when its signal aborts', async () => {
    if (!subject.faults.includes('hang')) return
    await using staged = await subject.open({ ...scene, fault: 'hang' })
    const reason = new Error('no longer needed')
    const controller = new AbortController()
    void delivered(subject).then(() => controller.abort(reason))
    const work = staged.policy.sample(sampleRequest(), { signal: controller.signal })
    await expect(work).rejects.toBe(reason)
  })
}

async function failureOf(policy: Policy, request: SampleRequest): Promise<Failure> {
  const each = call()
  try {
    await across('policy', each, () => policy.sample(request, each))
  } catch (cause) {
    if (cause instanceof Failure) return cause
    throw cause
  }
  throw new Error('expected a failure')
}
