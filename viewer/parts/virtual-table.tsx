import type { ComponentChildren } from 'preact'
import { useCallback, useContext, useEffect, useRef, useState } from 'preact/hooks'
import { VersionContext } from '../data/use-data.ts'
import { Empty, Problem, Waiting } from './states.tsx'

/** A column of a long table. */
export interface Column<Row> {
  readonly name: string
  readonly title: string
  /** What the numbers below are. */
  readonly about: string
  readonly isNumber?: boolean
  readonly cell: (row: Row) => ComponentChildren
}

/** A page of a long table. */
export interface TablePage<Row> {
  readonly total: number
  readonly rows: readonly Row[]
}

interface VirtualTableProps<Row, Page extends TablePage<Row>> {
  readonly label: string
  /** Identifies the list; another value starts at the top again. */
  readonly of: string
  readonly columns: readonly Column<Row>[]
  /** The widths of the columns, as CSS has them. */
  readonly widths: string
  readonly load: (offset: number, limit: number) => Promise<Page>
  readonly onPage?: (page: Page) => void
  readonly keyOf: (row: Row) => string
  readonly hrefOf: (row: Row) => string
  readonly sort?: {
    readonly by: string
    readonly isDescending: boolean
    readonly change: (by: string) => void
    readonly can: readonly string[]
  }
  readonly rowClass?: (row: Row) => string
  readonly empty: ComponentChildren
}

const rowHeight = 44
const pageSize = 60
const above = 12

interface Pages<Row> {
  readonly of: string
  readonly total: number | undefined
  readonly rows: ReadonlyMap<number, Row>
  readonly problem?: string
}

/**
 * A table of any length: only the rows in sight are drawn, and only the pages around them are asked
 * for.
 */
export function VirtualTable<Row, Page extends TablePage<Row>>(
  props: VirtualTableProps<Row, Page>,
) {
  const { of, columns, widths, label, keyOf, hrefOf, rowClass } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [height, setHeight] = useState(800)
  const first = Math.max(0, Math.floor(top / rowHeight) - above)
  const count = Math.ceil(height / rowHeight) + 2 * above
  const pages = usePages(props, first, count)
  useEffect(() => {
    scroller.current?.scrollTo({ top: 0 })
  }, [of])
  useEffect(() => {
    const element = scroller.current
    if (!element) return
    const observer = new ResizeObserver(() => setHeight(element.clientHeight))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const total = pages.total ?? 0
  const shown = Array.from(
    { length: Math.max(0, Math.min(count, total - first)) },
    (_, index) => first + index,
  )
  return (
    <div
      class="virtual"
      role="table"
      aria-label={label}
      aria-rowcount={total + 1}
      aria-busy={pages.total === undefined}
    >
      <Head columns={columns} widths={widths} sort={props.sort} />
      <div
        class="rows"
        ref={scroller}
        tabIndex={0}
        role="rowgroup"
        aria-label={`Rows of ${label}`}
        onScroll={event => setTop(event.currentTarget.scrollTop)}
        onKeyDown={moveFocus}
      >
        {pages.problem !== undefined && <Problem text={pages.problem} />}
        {pages.total === undefined && pages.problem === undefined && (
          <Waiting what={label} lines={12} />
        )}
        {pages.total === 0 && (props.empty ?? <Empty title="Nothing here" />)}
        <div class="space" role="presentation" style={{ height: `${total * rowHeight}px` }}>
          {shown.map(index => {
            const row = pages.rows.get(index)
            const place = {
              transform: `translateY(${index * rowHeight}px)`,
              gridTemplateColumns: widths,
            }
            if (!row)
              return (
                <div key={`empty ${index}`} class="row bones" role="presentation" style={place} />
              )
            return (
              <div
                key={keyOf(row)}
                class={`row ${rowClass?.(row) ?? ''}`}
                role="row"
                aria-rowindex={index + 2}
                style={place}
              >
                {columns.map(({ name, cell, isNumber }, number) => (
                  <span key={name} role="cell" class={isNumber ? 'number' : ''}>
                    {number === 0 ? <a href={hrefOf(row)}>{cell(row)}</a> : cell(row)}
                  </span>
                ))}
              </div>
            )
          })}
        </div>
      </div>
    </div>
  )
}

function Head<Row>({
  columns,
  widths,
  sort,
}: {
  columns: readonly Column<Row>[]
  widths: string
  sort: VirtualTableProps<Row, TablePage<Row>>['sort']
}) {
  return (
    <div role="rowgroup">
      <div class="row head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: widths }}>
        {columns.map(({ name, title, about, isNumber }) => {
          const isSorted = sort?.by === name
          const direction = sort?.isDescending ? 'descending' : 'ascending'
          return (
            <span
              key={name}
              role="columnheader"
              class={isNumber ? 'number' : ''}
              title={about}
              aria-sort={isSorted ? direction : undefined}
            >
              {sort?.can.includes(name) ? (
                <button type="button" class="plain" onClick={() => sort.change(name)}>
                  {title}
                  <i aria-hidden="true">{isSorted ? (sort.isDescending ? ' ↓' : ' ↑') : ''}</i>
                </button>
              ) : (
                title
              )}
            </span>
          )
        })}
      </div>
    </div>
  )
}

/** The up and down keys move from row to row. */
function moveFocus(event: KeyboardEvent): void {
  const step =
    event.key === 'ArrowDown'
      ? 'nextElementSibling'
      : event.key === 'ArrowUp'
        ? 'previousElementSibling'
        : undefined
  const from = (event.target as HTMLElement).closest('.row')
  const to = step && from?.[step]?.querySelector('a')
  if (!to) return
  event.preventDefault()
  to.focus()
}

/** Loads the pages that are in sight, and forgets those of another list. */
function usePages<Row, Page extends TablePage<Row>>(
  { of, load, onPage }: VirtualTableProps<Row, Page>,
  first: number,
  count: number,
): Pages<Row> {
  const version = useContext(VersionContext)
  const [pages, setPages] = useState<Pages<Row>>({ of, total: undefined, rows: new Map() })
  const asked = useRef({ list: '', pages: new Set<number>() })
  const ask = useCallback(
    async (page: number): Promise<void> => {
      const list = `${of} ${version}`
      if (asked.current.list !== list) asked.current = { list, pages: new Set() }
      if (asked.current.pages.has(page)) return
      asked.current.pages.add(page)
      try {
        const answer = await load(page * pageSize, pageSize)
        if (asked.current.list !== list) return
        onPage?.(answer)
        setPages(sofar => {
          const rows = new Map(sofar.of === of ? sofar.rows : [])
          for (const [index, row] of answer.rows.entries()) rows.set(page * pageSize + index, row)
          return { of, total: answer.total, rows }
        })
      } catch (error) {
        if (asked.current.list !== list) return
        setPages({ of, total: undefined, rows: new Map(), problem: (error as Error).message })
      }
    },
    [of, version, load, onPage],
  )
  const from = Math.floor(first / pageSize)
  const to = Math.floor((first + count) / pageSize)
  useEffect(() => {
    for (let page = from; page <= to; page++) {
      if (page === from || pages.of !== of || (pages.total ?? 0) > page * pageSize) void ask(page)
    }
  }, [ask, from, to, of, pages.of, pages.total])
  return pages.of === of ? pages : { of, total: undefined, rows: new Map() }
}
