ATTACH 'other.db'
