import { formatNumber } from '../data/format.ts'

/**
 * The rewards of a group at a glance: one mark each, filled as far as its reward lies between the
 * lowest and the highest of the run. Groups without contrast are drawn faint.
 */
export function RewardStrip({
  rewards,
  range,
  unscored = 0,
}: {
  rewards: readonly number[]
  range: { readonly low: number; readonly high: number }
  unscored?: number
}) {
  const isFlat = rewards.length > 1 && rewards.every(reward => reward === rewards[0])
  const width = range.high - range.low
  const shown = rewards.slice(0, 24)
  const told = `${rewards.length} rewards: ${shown.map(formatNumber).join(', ')}${isFlat ? '; no contrast' : ''}`
  return (
    <span
      class={isFlat ? 'strip flat' : 'strip'}
      role="img"
      aria-label={unscored > 0 ? `${told}; ${unscored} without a reward` : told}
    >
      {shown.map((reward, index) => (
        <i key={index}>
          <i
            style={{
              height: `${width === 0 ? (reward > 0 ? 100 : 0) : Math.max(0, Math.min(1, (reward - range.low) / width)) * 100}%`,
            }}
          />
        </i>
      ))}
      {Array.from({ length: Math.min(unscored, 8) }, (_, index) => (
        <i key={`x${index}`} class="none" />
      ))}
      {rewards.length > shown.length && <small>+{rewards.length - shown.length}</small>}
    </span>
  )
}
