/** Invisible characters, and the signs shown for them. */
const signs: Readonly<Record<string, string>> = {
  '\n': '↵',
  '\r': '␍',
  '\t': '⇥',
  '\u00a0': '⍽',
  '\u200b': '∅',
}

/** Control characters, and direction marks that could disguise a text. */
const isHidden = (code: number): boolean =>
  code < 0x20 ||
  code === 0x7f ||
  (code >= 0x202a && code <= 0x202e) ||
  (code >= 0x2066 && code <= 0x2069)

/** The text in pieces: every second one is an invisible character. */
function piecesOf(text: string): readonly string[] {
  const pieces = ['']
  for (const character of text) {
    const isSign = character in signs || isHidden(character.codePointAt(0)!)
    if (isSign) pieces.push(character, '')
    else pieces[pieces.length - 1] += character
  }
  return pieces
}

/** Text with visible white space; invisible characters are shown as a sign or as their code. */
export function Visible({ text }: { text: string }) {
  const pieces = piecesOf(text)
  return (
    <>
      {pieces.map((piece, index) => {
        if (index % 2 === 0) return <Spaces key={index} text={piece} />
        const sign =
          signs[piece] ?? `U+${piece.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
        return (
          <i key={index} class="sign">
            {sign}
          </i>
        )
      })}
    </>
  )
}

/** Spaces at the ends show as dots: they are part of the token. */
function Spaces({ text }: { text: string }) {
  const [, before = '', middle = '', after = ''] = /^( *)(.*?)( *)$/s.exec(text) ?? []
  if (before === '' && after === '') return <>{text}</>
  return (
    <>
      {before !== '' && <i class="sign">{'·'.repeat(before.length)}</i>}
      {middle}
      {after !== '' && <i class="sign">{'·'.repeat(after.length)}</i>}
    </>
  )
}
