import { parsePartName } from '../../base/core/names/part-name.ts'
import { type LossReport, measureLoss, type Probe } from '../../engine/condensers/probe.ts'
import { keywordSystemPrompt } from '../../engine/condensers/prompts.ts'
import { byteModel, findModelOf, openRenderer } from '../../run/settings/model-source.ts'
import { openCondense } from '../../run/settings/open-condense.ts'
import { openPolicy } from '../../run/settings/open-policy.ts'
import { openSpeaker } from '../../run/settings/open-speaker.ts'
import type { DatasetItem } from './build.ts'
import { condensedSftItem } from './condensed-sft.ts'
import { condenserPairItem } from './condenser-pairs.ts'
import { runSftItems } from './run-sft.ts'
import { checkSource, isRun, passageTexts, readPassageTasks, runTexts } from './sources.ts'
import { makeTaughtSft } from './taught-sft.ts'

/** The sets that can be built. */
export const datasetKinds = ['condensed-sft', 'condenser'] as const

/** What a set is made from and with. */
export interface DatasetSource {
  readonly kind: (typeof datasetKinds)[number]
  /** A file of questions, a number of made ones, or a run folder. */
  readonly source: string
  readonly condense: string
  readonly model?: string | undefined
  /** The policy that holds the conversations, or proposes questions for pairs. */
  readonly policy?: string | readonly string[] | undefined
  readonly judge?: string | undefined
  /** What is good enough; the default depends on the kind. */
  readonly least?: number | undefined
  readonly mostRecalls?: number | undefined
  readonly seed: number
  readonly concurrency: number
}

/** The items of a set; disposing of it closes the models that were opened. */
export interface OpenedItems extends AsyncDisposable {
  readonly items: AsyncIterable<DatasetItem>
}

/** Opens everything that a set names. */
export async function openDatasetItems(from: DatasetSource): Promise<OpenedItems> {
  await checkSource(from.source)
  if (from.kind === 'condenser') return await openPairs(from)
  if (from.policy !== undefined && !isRun(from.source)) return await openTaught(from)
  const { source, seed, least, mostRecalls } = from
  const condense = await openCondense(from.condense, await openRenderer(from.model ?? byteModel))
  const options = {
    condenser: condense.condenser,
    ...(least !== undefined && { least }),
    ...(mostRecalls !== undefined && { mostRecalls }),
  }
  const items = isRun(source)
    ? runSftItems(source, options)
    : map(readPassageTasks(source, seed), task => condensedSftItem(task, options))
  return { items, [Symbol.asyncDispose]: () => condense[Symbol.asyncDispose]() }
}

async function openPairs(from: DatasetSource): Promise<OpenedItems> {
  const { source, seed, least, judge } = from
  const condense = await openCondense(from.condense, await openRenderer(from.model ?? byteModel))
  const [asker] = [from.policy ?? []].flat()
  const isKeyword = parsePartName(from.condense).name === 'keyword'
  const options = {
    condenser: condense.condenser,
    ...(least !== undefined && { least }),
    ...(asker !== undefined && { asker: await openSpeaker(asker) }),
    ...(judge !== undefined && { judge: await openSpeaker(judge) }),
    ...(isKeyword && { prompts: { system: keywordSystemPrompt } }),
  }
  const texts = isRun(source) ? runTexts(source) : passageTexts(source, seed)
  const items = map(texts, text => condenserPairItem(text, options))
  return { items, [Symbol.asyncDispose]: () => condense[Symbol.asyncDispose]() }
}

async function openTaught(from: DatasetSource): Promise<OpenedItems> {
  const { source, seed, concurrency, least, model } = from
  const policy = await openPolicy(from.policy!, model === undefined ? {} : { model })
  const renderer = await openRenderer(model ?? (await findModelOf(policy)))
  const condense = await openCondense(from.condense, renderer)
  const some = least === undefined ? {} : { least }
  const teacher = { policy, renderer, condense, seed, concurrency, ...some }
  return {
    items: map(readPassageTasks(source, seed), makeTaughtSft(teacher)),
    async [Symbol.asyncDispose]() {
      await condense[Symbol.asyncDispose]()
      await policy[Symbol.asyncDispose]()
    },
  }
}

async function* map<T, U>(items: AsyncIterable<T>, change: (item: T) => U): AsyncGenerator<U> {
  for await (const item of items) yield change(item)
}

/** Asks the questions of a source on its condensed passages, condenser by condenser. */
export async function* measureLosses(
  source: string,
  names: readonly string[],
  options: {
    readonly seed: number
    readonly judge?: string | undefined
    readonly model?: string | undefined
    /** Whether condensers are given the questions. */
    readonly tellsQuestion: boolean
    readonly signal: AbortSignal
  },
): AsyncGenerator<LossReport> {
  const { seed, judge, model = byteModel, tellsQuestion, signal } = options
  const probes: Probe[] = []
  for await (const { text, questions } of passageTexts(source, seed)) {
    for (const { question, answers } of questions) probes.push({ text, question, answers })
  }
  const speaker = judge === undefined ? undefined : await openSpeaker(judge)
  const asking = { signal, tellsQuestion, ...(speaker && { speaker }) }
  const renderer = await openRenderer(model)
  for (const name of names) {
    await using opened = await openCondense(name, renderer)
    yield { ...(await measureLoss(opened.condenser, probes, asking)), condenser: name }
  }
}
