// The mark that replaces a value that may not be shown, and the characters that a text may have. Pure.

/** People see this in place of a value. */
export const MARK = '<redacted>'

/** Stands for a value until the text is finished. No text has this character once `clean` has read it. */
export const HOLE = '\ue000'
/** Stands between texts that are searched together. */
export const SEPARATOR = '\ue001'

const ESC = String.fromCharCode(27)
/** Escape sequences of terminals; control characters; marks of direction; private characters, such as the two above. */
const UNPRINTABLE = new RegExp(
  [
    `${ESC}\\[[0-9;?]*[ -/]*[@-~]`,
    '[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]',
    '[\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ue000-\\uf8ff]',
  ].join('|'),
  'g',
)
export const clean = (text: string): string => text.toWellFormed().replace(UNPRINTABLE, '').replace(/\r\n?/g, '\n')

const HOLES = new RegExp(`${HOLE}(?:[\\s,;:"'\`=|&/.+-]*${HOLE})*`, 'g')

/** Writes the marks, one for holes that stand side by side, in one line of text. */
export const finished = (text: string): string => text.replace(/\s+/g, ' ').replace(HOLES, MARK).trim()
