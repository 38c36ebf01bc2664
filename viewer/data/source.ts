import type {
  ComparisonAnswer,
  Curves,
  Facets,
  GroupAnswer,
  GroupPage,
  ImportAnswer,
  RunAnswer,
  RunEntry,
  TryAnswer,
  TryRequest,
} from '../../src/doors/view/answers.ts'
import type { GroupQuery } from '../../src/doors/view/query.ts'
import type {
  PartingAnswer,
  TokenPage,
  TrajectoryAnswer,
  TreeAnswer,
} from '../../src/doors/view/trajectory-shapes.ts'

/** A part of a long list. */
export interface Stretch {
  readonly offset: number
  readonly limit: number
}

/** One side of a comparison that is asked for. */
export interface SideRequest {
  readonly run: string
  /** The step of an evaluation; without it, the whole run. */
  readonly step?: number
}

/** A change of a watched run. */
export interface News {
  readonly version: number
  readonly status: string
}

/** Where the page has its answers from: the program that serves it, or the file it lies in. */
export interface Source {
  readonly isFile: boolean
  runs(): Promise<readonly RunEntry[]>
  run(name: string): Promise<RunAnswer>
  curves(name: string): Promise<Curves>
  facets(name: string): Promise<Facets>
  groups(name: string, query: GroupQuery, stretch: Stretch): Promise<GroupPage>
  group(name: string, id: string): Promise<GroupAnswer>
  trajectory(name: string, id: string): Promise<TrajectoryAnswer>
  tokens(name: string, id: string, stretch: Stretch & { readonly path: number }): Promise<TokenPage>
  tree(name: string, id: string): Promise<TreeAnswer>
  parting(name: string, a: string, b: string): Promise<PartingAnswer>
  compare(before: SideRequest, after: SideRequest, stretch: Stretch): Promise<ComparisonAnswer>
  raw(name: string, id: string): Promise<unknown>
  /** Calls back when a run has grown; the returned function stops listening. */
  watch(name: string, onChange: (news: News) => void): () => void
  beginTry(name: string, request: TryRequest): Promise<string>
  tryAnswer(name: string): Promise<TryAnswer>
  importFile(file: File, format: string): Promise<ImportAnswer>
}
