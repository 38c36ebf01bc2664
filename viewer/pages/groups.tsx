import { useCallback, useState } from 'preact/hooks'
import type { Facets, GroupRow, GroupPage as Page } from '../../src/doors/view/answers.ts'
import {
  type GroupQuery,
  readQuery,
  type SortKey,
  sortKeys,
  writeQuery,
} from '../../src/doors/view/query.ts'
import { formatCount, formatFixed } from '../data/format.ts'
import { goTo, hrefTo } from '../data/route.ts'
import { useData, useSource } from '../data/use-data.ts'
import { GroupFilters } from '../parts/group-filters.tsx'
import { RewardStrip } from '../parts/reward-strip.tsx'
import { Empty } from '../parts/states.tsx'
import { type Column, VirtualTable } from '../parts/virtual-table.tsx'

type Range = { readonly low: number; readonly high: number }

const widths =
  'minmax(220px, 2.6fr) 44px minmax(110px, 1fr) 60px 70px 56px 66px minmax(150px, 1.6fr)'

/** Every group of a run, to be sorted, narrowed and searched. */
export function GroupsPage({
  name,
  params,
}: {
  name: string
  params: Readonly<Record<string, string>>
}) {
  const source = useSource()
  const query = readQuery(params)
  const key = JSON.stringify([name, query])
  const facets = useData(`facets ${name}`, each => each.facets(name))
  const [page, setPage] = useState<Page | undefined>(undefined)
  const load = useCallback(
    (offset: number, limit: number) => source.groups(name, query, { offset, limit }),
    [source, key],
  )
  const change = (next: GroupQuery): void =>
    goTo(hrefTo(['run', name, 'groups'], writeQuery(next)), { replace: true })
  const sortBy = (by: string): void => {
    const sort = by as SortKey
    // Numbers are first sorted descending, names ascending.
    const isDescending =
      query.sort === sort ? !query.isDescending : sort !== 'task' && sort !== 'order'
    change({ ...query, sort, isDescending })
  }
  const known = facets.kind === 'ready' ? facets.value : undefined
  return (
    <div class="fill">
      <header class="title tight">
        <h1>Groups</h1>
        <Found page={page} />
      </header>
      <GroupFilters query={query} facets={known} onChange={change} />
      <VirtualTable<GroupRow, Page>
        label="Groups"
        of={key}
        columns={columnsOf(rangeOf(known))}
        widths={widths}
        load={load}
        onPage={setPage}
        keyOf={row => row.id}
        hrefOf={row => hrefTo(['run', name, 'group'], { id: row.id })}
        rowClass={row => (row.rewards.length > 1 && row.spread === 0 ? 'flat' : '')}
        sort={{ by: query.sort, isDescending: query.isDescending, change: sortBy, can: sortKeys }}
        empty={
          <Empty title="No group fits">
            <p>Fewer conditions find more.</p>
            <a href={hrefTo(['run', name, 'groups'])}>Show all</a>
          </Empty>
        }
      />
    </div>
  )
}

function Found({ page }: { page: Page | undefined }) {
  if (!page) return <p class="meta" role="status" />
  const { total, all, searched } = page
  const isSearching = searched !== undefined && searched.looked < searched.trees
  return (
    <p class="meta" role="status">
      <span>
        {total === all
          ? `${formatCount(all)} groups`
          : `${formatCount(total)} of ${formatCount(all)} groups`}
      </span>
      {isSearching && (
        <span>
          searched {formatCount(searched.looked)} of {formatCount(searched.trees)} trees
        </span>
      )}
    </p>
  )
}

function rangeOf(facets: Facets | undefined): Range {
  const { low = 0, high = 1 } = facets?.rewards ?? {}
  return { low: Math.min(0, low), high: Math.max(high, low + 1e-9, Math.min(0, low) + 1e-9) }
}

function columnsOf(range: Range): readonly Column<GroupRow>[] {
  return [
    {
      name: 'task',
      title: 'Task',
      about: 'What was attempted, and how it begins',
      cell: row => (
        <>
          <b>{row.task}</b>
          {row.seat !== undefined && <span class="tag">seat {row.seat}</span>}
          <small>{row.isLeftOut ? 'not in this file' : row.opening}</small>
        </>
      ),
    },
    {
      name: 'step',
      title: 'Step',
      about: 'The training step that rolled it',
      isNumber: true,
      cell: row => (row.step === null ? '–' : row.step),
    },
    {
      name: 'spread',
      title: 'Rewards',
      about:
        'One mark per member, filled by its reward; sorted by the highest less the lowest. Without contrast they are faint.',
      cell: row => <RewardStrip rewards={row.rewards} range={range} unscored={row.unscored} />,
    },
    {
      name: 'mean',
      title: 'Mean',
      about: 'Mean reward of scored members',
      isNumber: true,
      cell: row => formatFixed(row.mean),
    },
    {
      name: 'members',
      title: 'Members',
      about: 'Trajectories of the group, those without a reward included',
      isNumber: true,
      cell: row => formatCount(row.members),
    },
    {
      name: 'turns',
      title: 'Turns',
      about: 'Mean turns per trajectory',
      isNumber: true,
      cell: row => formatFixed(row.turns, 1),
    },
    {
      name: 'tokens',
      title: 'Tokens',
      about: 'Mean sampled tokens per trajectory',
      isNumber: true,
      cell: row => formatFixed(row.tokens, 1),
    },
    {
      name: 'outcome',
      title: 'Outcome',
      about: 'How its trajectories ended, and what filters said',
      cell: row => (
        <>
          {row.isEvaluation && <span class="tag">held out</span>}
          {row.rewards.length > 1 && row.spread === 0 && <span class="tag">no contrast</span>}
          {row.outcomes
            .filter(outcome => outcome !== 'completed')
            .map(outcome => (
              <span key={outcome} class={/^(failed|aborted)/.test(outcome) ? 'tag bad' : 'tag'}>
                {outcome}
              </span>
            ))}
          {!row.isEvaluation && row.dropped > 0 && <span class="tag">{row.dropped} filtered</span>}
        </>
      ),
    },
  ]
}
