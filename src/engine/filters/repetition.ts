/** Texts shorter than this many units are too short to repeat themselves. */
const fewest = 30

/** Scripts that write without spaces between words. */
const unspaced = /[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]/u

/** The share of n-grams of a text that stood in it before; 0 for short texts. */
export function repetition(text: string, length: number): number {
  const units = unitsOf(text)
  if (units.length < fewest + length) return 0
  const seen = new Set<string>()
  let repeated = 0
  const count = units.length - length + 1
  for (let start = 0; start < count; start++) {
    const gram = units.slice(start, start + length).join('\u0000')
    if (seen.has(gram)) repeated++
    else seen.add(gram)
  }
  return repeated / count
}

/** Words, or characters if a text is mostly written without spaces. */
function unitsOf(text: string): readonly string[] {
  const letters = [...text].filter(character => character.trim() !== '')
  const share = letters.filter(character => unspaced.test(character)).length / (letters.length || 1)
  return share > 0.3 ? letters : text.split(/\s+/u).filter(word => word !== '')
}

/** Words of hesitation, in several languages. */
const markers = [
  ...[
    'wait',
    'hmm',
    'actually',
    'no,',
    'hold on',
    'let me think again',
    'on second thought',
    'oops',
  ],
  ...['等等', '等一下', '不对', '重新想', '嗯', '再想想'],
  ...['待って', 'いや', 'ちょっと待', 'うーん'],
  ...['잠깐', '아니', '음,'],
  ...['moment mal', 'warte', 'espera', 'attends', 'подожди', 'хм'],
]

/** Markers of hesitation per 1,000 characters; 0 for texts too short to tell. */
export function hesitation(text: string): number {
  if (text.length < 200) return 0
  const lower = text.toLowerCase()
  const count = markers.reduce((sum, marker) => sum + occurrences(lower, marker), 0)
  return (count * 1000) / text.length
}

function occurrences(text: string, part: string): number {
  let count = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count++
  return count
}
