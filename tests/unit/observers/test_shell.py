"""Commands that only read, and commands that may change something, by what each of their parts does."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.observers.rules.shell import is_read_only
from tests.batches import Talk
from tests.strategies import examples

READ = r"""
ls -la
FOO=1 BAR=2 env | sort
cat a | head -5 && wc -l < a
! grep foo bar || true
[ -f x ] && cat x
cat "a b" 'c d' $'e' f\ g
echo "a > b; rm x" \> c # rm x
# rm x
(cd a; ls)
cat a |& head & pwd
ls 2>/dev/null >&2 1> /dev/null &>/dev/null
grep x <<< "$y"
diff <(sort a) <(sort -k2 -u b)
echo "$(git rev-parse "HEAD")" `pwd` "$((1+2)) ${x:-y}"
git -C /x --no-pager log --oneline | head
git -c core.pager=cat diff
git branch -a && git branch --show-current; git branch --contains abc; git branch
git tag -l 'v*'; git tag -n5; git tag
git remote -v; git remote get-url origin
git stash list && git stash show -p
git reflog; git worktree list; git config --get user.name; git clean -nd
git config user.name
git -C /src config --global fetch.prune 2>&1; echo done
find . -name '*.py' | xargs -n 1 grep -n foo
find . -name "*.py" -exec grep -l foo {} +
find . -type f -exec wc -l {} \; -o -name a
fd -e py -x wc -l
sed -n '1,20p' a.py
sed 's/a/b/' a.py
grep 'rm -rf' a | awk '{print $1 " | > " $2}'
awk -F: '$1 > 3 {print $2}' f
timeout 5 nice -n 3 cat x
sudo -u me cat x; time ls; command -v rg
xxd a | head; sort a | uniq -c
date +%s; python3 --version
gh pr view 3; gh api repos/x/y
""".strip().splitlines()
CHANGES = r"""
rm -rf x
\rm x
"rm" x
$CMD x
$(which rm) x
FOO=1 rm x
ls && rm x
ls; rm x
ls & rm x
ls || rm x
! rm x
(cd a && rm b)
{ rm x; }
for f in *; do rm $f; done
echo "$(rm -rf x)"
echo `rm x`
echo "`rm x`"
echo "$( (ls); rm x)"
diff <(rm x) b
ls > out
ls >> "$f"
ls >| out
ls &> out
ls >& out
echo x 1>out
cat <> f
cat <<EOF
cat > f <<EOF
ls 'unclosed
ls "unclosed
ls )
ls (
ls | tee out
cat a | tee -a out | head
find . -name '*.pyc' | xargs rm
find . -name '*.pyc' | xargs -I {} -n 1 rm {}
find . -delete
find . -exec rm {} \;
find . -exec grep -q x {} \; -exec rm {} +
find . -exec sh -c 'rm $1' _ {} \;
find . -fprint out
find . -exec
fd -e py -x rm
sed -i 's/a/b/' f
sed -i.bak 's/a/b/' f
sed -ni 's/a/b/p' f
sed --in-place s/a/b/ f
sed 's/a/b/w out' f
sed -n '/x/w out' f
awk '{print > "out"}' f
awk '{print $1 " " > $2".txt"}' f
awk 'BEGIN{system("rm x")}'
awk '{print | "sh"}' f
awk '{"date" | getline d}' f
awk -i inplace '{print}' f
git stash
git stash pop
git checkout -- .
git restore f
git reset --hard
git clean -fd
git branch new
git branch -v new
git branch -aD old
git tag v1
git tag -a v1 -m x
git tag -d v1
git remote add o u
git reflog expire --all
git config user.name me
git config --unset user.name
git config edit
git diff --output=f
git worktree add x
git -C /x commit -m y
sort -uo f f
uniq a b
xxd -r a b
tree -o f
yq -i .a f
date -s x
env FOO=1 make
sudo rm x
timeout 5 make
command rm x
gh pr create
gh api -X POST x
gh api x -fa=b
curl -o x y
""".strip().splitlines()


@pytest.mark.parametrize("command", READ)
def test_listing_searching_and_printing_only_read(command: str) -> None:
    """S4.5: also in pipes, lists, substitutions and behind other commands."""
    assert is_read_only(command)


@pytest.mark.parametrize("command", CHANGES)
def test_one_part_that_may_change_something_is_enough(command: str) -> None:
    """S4.5: a file that is written, a command that runs another, or syntax that is not understood."""
    assert not is_read_only(command)
    row = Talk().tool("Bash", {"command": command}, "").one()
    assert row.importance > 2


@given(st.lists(st.tuples(st.sampled_from(READ), st.booleans()), min_size=1, max_size=3), st.sampled_from(CHANGES),
       st.sampled_from([" && ", " || ", "; ", "\n", " | ", " & "]))  # fmt: skip
@examples(60)
def test_a_line_reads_only_if_all_of_its_parts_do(parts: list[tuple[str, bool]], change: str, joint: str) -> None:
    """However they are joined and nested."""
    reads = [f"({part}\n)" if nested else f"{part}\n" for part, nested in parts]
    assert is_read_only("".join(reads))
    without_comment = [part for part in reads if "#" not in part]
    assert not is_read_only(joint.join([*(part.strip() for part in without_comment), change]))


@pytest.mark.parametrize(
    "run", ['"$(', "(", "`", "'", '"', "\\", 'print "x" ', "1", "$((", "${", "a|", "<(", "#", "\t"]
)
def test_hostile_commands_take_little_time(run: str) -> None:
    start = time.process_time()
    for command in (run * (20_000 // len(run)), f"awk '{run * 5_000}", f"sed '{run * 5_000}"):
        is_read_only(command)
    assert time.process_time() - start < 2
