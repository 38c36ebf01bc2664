import { PythonFloat } from '@espalier/text/python'
import type { Retrieval } from '../domain.ts'
import { argument } from '../program/arguments.ts'
import { call } from '../program/call.ts'
import type { Modules } from '../program/imports.ts'
import { compilePattern } from '../program/library/pattern.ts'
import { methodNamed } from '../program/methods.ts'
import {
  type Instance,
  Native,
  Opaque,
  PythonError,
  PythonTuple,
  unwrap,
  type Value,
} from '../program/values.ts'
import { type Checkout, domainPath } from './checkout.ts'

/** A document of the knowledge base. */
export interface Document {
  readonly id: string
  readonly title: string
  readonly content: string
}

/** The documents of banking, by id, in the order of their files. */
export interface KnowledgeBase {
  readonly documents: ReadonlyMap<string, Document>
  /** Made when it is first searched. */
  index?: SearchIndex
}

/** Reads all documents. */
export function loadKnowledgeBase(checkout: Checkout): KnowledgeBase {
  const folder = domainPath('banking_knowledge', 'documents')
  const documents = new Map<string, Document>()
  for (const name of checkout.list(folder)) {
    if (!name.endsWith('.json')) continue
    const document = JSON.parse(checkout.data(`${folder}/${name}`)) as Document
    documents.set(document.id, document)
  }
  return { documents }
}

/** A document found, with how well it fits. */
export type Hit = readonly [id: string, score: number]

const words = (text: string): readonly string[] =>
  methodNamed(text, 'split')?.run(text.toLowerCase(), [], new Map()) as string[]

interface SearchIndex {
  readonly ids: readonly string[]
  readonly counts: readonly ReadonlyMap<string, number>[]
  readonly lengths: readonly number[]
  readonly weights: ReadonlyMap<string, number>
  readonly average: number
}

const K1 = 1.5
const B = 0.75
const EPSILON = 0.25

function makeIndex({ documents }: KnowledgeBase): SearchIndex {
  const texts = [...documents.values()].map(({ content }) => words(content))
  const counts = texts.map(countWords)
  const weights = weigh(counts)
  const total = texts.reduce((sum, text) => sum + text.length, 0)
  return {
    ids: [...documents.keys()],
    counts,
    lengths: texts.map(text => text.length),
    weights,
    average: total / texts.length,
  }
}

function countWords(text: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const word of text) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

/** The BM25 weight of each word; words in more than half of the documents get a share of the average. */
function weigh(counts: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const frequencies = new Map<string, number>()
  for (const count of counts)
    for (const word of count.keys()) frequencies.set(word, (frequencies.get(word) ?? 0) + 1)
  const weights = new Map<string, number>()
  const common: string[] = []
  let sum = 0
  for (const [word, frequency] of frequencies) {
    const weight = Math.log(counts.length - frequency + 0.5) - Math.log(frequency + 0.5)
    weights.set(word, weight)
    sum += weight
    if (weight < 0) common.push(word)
  }
  const floor = EPSILON * (sum / weights.size)
  for (const word of common) weights.set(word, floor)
  return weights
}

/** The documents that fit a query best, by BM25. */
export function searchDocuments(
  knowledge: KnowledgeBase,
  query: string,
  limit = 10,
): readonly Hit[] {
  if (query.trim() === '') return []
  knowledge.index ??= makeIndex(knowledge)
  const { ids, counts, lengths, weights, average } = knowledge.index
  const scores = ids.map(() => 0)
  for (const word of words(query)) {
    const weight = weights.get(word) ?? 0
    for (const [at, count] of counts.entries()) {
      const frequency = count.get(word) ?? 0
      const share = 1 - B + (B * (lengths[at] as number)) / average
      scores[at] =
        (scores[at] as number) + weight * ((frequency * (K1 + 1)) / (frequency + K1 * share))
    }
  }
  return ranked(
    ids.map((id, at) => [id, scores[at] as number]),
    limit,
  )
}

const ranked = (hits: readonly Hit[], limit: number): readonly Hit[] =>
  [...hits].sort(([, left], [, right]) => right - left).slice(0, limit)

/** The documents in which a pattern matches, those with most matches first. */
export function grepDocuments(
  { documents }: KnowledgeBase,
  query: string,
  limit = 10,
): readonly Hit[] {
  if (query.trim() === '') return []
  const pattern = patternOf(query)
  const hits: Hit[] = []
  for (const { id, content } of documents.values()) {
    const count = [...content.matchAll(pattern)].length
    if (count > 0) hits.push([id, count])
  }
  return ranked(hits, limit)
}

const IGNORECASE = 2

/** A query that is not a valid pattern is searched for literally. */
function patternOf(query: string): RegExp {
  try {
    return compilePattern(query, IGNORECASE)
  } catch (error) {
    if (!(error instanceof PythonError)) throw error
    return compilePattern(query.replace(/[^\w\s]/g, '\\$&'), IGNORECASE)
  }
}

/** The retrieval pipeline that tools call: a search, and the documents it finds. */
function pipeline(
  knowledge: KnowledgeBase,
  search: (query: string, limit: number) => readonly Hit[],
): Value {
  const part = (name: 'title' | 'content'): Native =>
    new Native(name, ([id]) => knowledge.documents.get(id as string)?.[name] ?? null)
  const retrieve = new Native('retrieve', (given, named) => {
    const query = unwrap(given[0] as Value)
    if (typeof query !== 'string') throw new PythonError('AttributeError', 'a query is a text')
    const limit = Number(argument(given, named, 1, 'top_k') ?? 10)
    const hits = search(query, limit).map(
      ([id, score]) => new PythonTuple<Value>([id, new PythonFloat(score)]),
    )
    return named.has('return_timing') ? timed(hits) : hits
  })
  return new Opaque(
    'RetrievalPipeline',
    new Map<string, Value>([
      ['retrieve', retrieve],
      ['get_document_title', part('title')],
      ['get_document_content', part('content')],
    ]),
  )
}

/** The original prints how long a search took; here that is always 0, so that runs repeat exactly. */
function timed(results: Value[]): Value {
  const none = new PythonFloat(0)
  const timing = new Opaque(
    'Timing',
    new Map<string, Value>(
      ['retrieval_ms', 'postprocessing_ms', 'total_ms'].map(name => [name, none]),
    ),
  )
  return new Opaque(
    'RetrievalResult',
    new Map<string, Value>([
      ['results', results],
      ['timing', timing],
    ]),
  )
}

/** Opens the toolkit of banking with the tools of its way of retrieval. */
export function makeKnowledgeKit(
  program: Modules,
  {
    database,
    retrieval,
    knowledge,
  }: {
    readonly database: Instance
    readonly retrieval: Retrieval
    readonly knowledge: KnowledgeBase
  },
): Instance {
  const kits = program.load('tau2.domains.banking_knowledge.retrieval_toolkits').scope
  const search = pipeline(knowledge, (query, limit) => searchDocuments(knowledge, query, limit))
  const grep = pipeline(knowledge, (query, limit) => grepDocuments(knowledge, query, limit))
  const open = (name: string, ...more: readonly Value[]): Instance =>
    call(kits.get(name) as Value, [database, ...more]) as Instance
  if (retrieval === 'bm25') return open('KnowledgeToolsWithKBSearch', search)
  if (retrieval === 'grep_only') return open('KnowledgeToolsWithGrep', grep)
  if (retrieval === 'bm25_grep') return open('KnowledgeToolsWithKBSearchAndGrep', search, grep)
  return open('KnowledgeToolsPlain')
}
