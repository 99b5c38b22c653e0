// Writes oracle.txt: the tokens of each line of scripts.txt, with its line break, by npm's tiktoken
// with the vocabulary of tokenizer.json (learned from scripts.txt three times and README.md).
// usage: npm install tiktoken && node oracle.js
const fs = require('fs');
const { Tiktoken } = require('tiktoken/lite');

const bytes = [];
for (let b = 0, other = 256; b < 256; b++) {
    const shown = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    bytes[shown ? b : other++] = b;
}
const vocabulary = JSON.parse(fs.readFileSync('tokenizer.json', 'utf8')).model.vocab;
const ranks = Object.keys(vocabulary).filter((token) => token !== '<|endoftext|>').sort((a, b) => vocabulary[a] - vocabulary[b])
    .map((token) => Buffer.from(Array.from(token, (c) => bytes[c.codePointAt(0)])).toString('base64'));
const pattern = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const encoder = new Tiktoken('! 0 ' + ranks.join(' '), {}, pattern);
const lines = fs.readFileSync('scripts.txt', 'utf8').split(/(?<=\n)/);
fs.writeFileSync('oracle.txt', lines.map((line) => Array.from(encoder.encode_ordinary(line)).join(' ') + '\n').join(''));
