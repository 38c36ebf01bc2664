import type { TreeAnswer } from '../../src/doors/view/trajectory-shapes.ts'
import { formatFixed, formatSigned } from '../data/format.ts'
import { endingNumber, type Placed, type TreeLayout } from './tree-layout.ts'

interface PictureProps {
  readonly tree: TreeAnswer
  readonly layout: TreeLayout
  readonly ending: number
  readonly pointed: number | undefined
  readonly onPoint: (node: number | undefined) => void
  readonly onChoose: (ending: number) => void
}

const lane = 34
const margin = { left: 8, right: 150, top: 16 }

/** Pixels that the page leaves free at its sides. */
const pageMargin = 64

/** The tree drawn from left to right; the chosen path is highlighted. */
export function TreePicture({ tree, layout, ending, pointed, onPoint, onChoose }: PictureProps) {
  const room = Math.min(900, innerWidth - margin.left - margin.right - pageMargin)
  const column = Math.max(22, Math.min(92, room / Math.max(1, layout.columns)))
  const width = margin.left + layout.columns * column + margin.right
  const height = layout.lanes * lane + margin.top * 2
  const x = (each: Placed): number => margin.left + each.x * column
  const y = (each: Placed): number => margin.top + each.lane * lane + lane / 2
  const chosen = new Set(tree.endings[ending]?.path ?? [])
  const replaced = new Set(tree.endings[ending]?.replaced ?? [])
  return (
    <div class="tree-picture" tabIndex={0} role="group" aria-label="Picture of the tree">
      <svg
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`A tree of ${tree.nodes.length} segments with ${tree.endings.length} endings`}
      >
        {[...layout.placed.values()].map(each => (
          <Edge
            key={each.node.node}
            each={each}
            parent={layout.placed.get(each.node.parent[0])}
            at={{ x, y, column }}
            isChosen={chosen.has(each.node.node)}
          />
        ))}
        {[...layout.placed.values()].map(each => (
          <g
            key={each.node.node}
            onMouseEnter={() => onPoint(each.node.node)}
            onMouseLeave={() => onPoint(undefined)}
            onClick={() => onChoose(each.node.endings[0] ?? 0)}
          >
            <rect
              class={`node ${each.node.origin} ${chosen.has(each.node.node) ? 'chosen' : ''} ${replaced.has(each.node.node) ? 'replaced' : ''} ${pointed === each.node.node ? 'pointed' : ''}`}
              x={x(each)}
              y={y(each) - 6}
              width={column - 12}
              height={12}
              rx={each.node.origin === 'sampled' ? 6 : 2}
            />
            {each.node.rewrite && <circle class="rewrite" cx={x(each) - 5} cy={y(each)} r="3.5" />}
          </g>
        ))}
        {tree.endings.map((each, index) => {
          const place = layout.placed.get(each.end[0])
          if (!place) return null
          return (
            <text
              key={each.id}
              class={index === ending ? 'leaf chosen' : 'leaf'}
              x={x(place) + column - 4}
              y={y(place) + 4}
              onClick={() => onChoose(index)}
            >
              <tspan class="ending-number">{endingNumber(each)}</tspan>
              <tspan dx="8">
                {each.reward ? formatFixed(each.reward.total) : each.outcome.kind}
              </tspan>
              <tspan class="advantage" dx="8">
                {each.advantage === null ? '' : formatSigned(each.advantage)}
              </tspan>
            </text>
          )
        })}
      </svg>
      <ul class="token-legend" aria-label="What the marks mean">
        <li>
          <i class="mark-prompt" />
          prompt
        </li>
        <li>
          <i class="mark-observed" />
          observed
        </li>
        <li>
          <i class="mark-sampled" />
          sampled
        </li>
        <li>
          <i class="mark-rewrite" />a rewrite begins
        </li>
        <li class="muted">
          dashed: replaced by a rewrite · at the ends: number, reward, advantage
        </li>
      </ul>
    </div>
  )
}

interface EdgeProps {
  readonly each: Placed
  readonly parent: Placed | undefined
  readonly at: {
    readonly x: (each: Placed) => number
    readonly y: (each: Placed) => number
    readonly column: number
  }
  readonly isChosen: boolean
}

function Edge({ each, parent, at, isChosen }: EdgeProps) {
  if (!parent) return null
  const from = { x: at.x(parent) + at.column - 12, y: at.y(parent) }
  const to = { x: at.x(each), y: at.y(each) }
  const middle = (from.x + to.x) / 2
  const bend = `M${from.x} ${from.y} C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`
  return (
    <path
      class={`edge ${isChosen ? 'chosen' : ''} ${each.node.rewrite ? 'rewritten' : ''}`}
      d={bend}
    />
  )
}
